"""Does this apply to me: what limits every plain timed step, and which change helps it first."""

from stepscope.report.kit.data import Data, Row
from stepscope.report.kit.named import Name
from stepscope.report.kit.quantity import Maybe, minus, over, value_of
from stepscope.results.option_labels import LABELS

from .ladders import Ladder, ladder_at
from .timed import Timed, in_bf16

ALIKE = 0.1  # shares of a step that are no further apart are as good as one
WHAT = ("size", "limited", "change")


def rows(data: Data) -> list[Row]:
    """Every plain timed step in bf16, neighbours of a size joined that have the same limit, first
    change and, as far as their ranges tell, share that it saves.

    last: the step of the longest context. contexts: from the shortest to it. change: what won most
    or should; saves: percent of the step, from the least to the most.
    """
    steps = sorted(in_bf16(data), key=lambda each: each.place.weight)
    groups: list[list[Row]] = []
    for row in map(_judged, steps):
        if groups and row["saved"] and _is_alike(groups[-1][0], row):
            groups[-1].append(row)
        elif row["saved"]:
            groups.append([row])
    return list(map(_joined, groups))


def _is_alike(one: Row, other: Row) -> bool:
    """Whether a row can hold both."""
    both = [one["saved"], other["saved"]]
    apart = max(map(min, both)) - min(map(max, both))
    return apart < ALIKE and all(one[name] == other[name] for name in WHAT)


def _joined(group: list[Row]) -> Row:
    least = min(min(row["saved"]) for row in group)
    most = max(max(row["saved"]) for row in group)
    last = group[-1]
    return {
        "last": last["timed"],
        "contexts": _span(group[0]["timed"].place.context, last["timed"].place.context),
        "change": Name(LABELS.get(last["change"], last["change"])),
        "saves": _span(round(100 * least), round(100 * most)),
    }


def _span(first: int, last: int) -> str:
    """`128 to 512`, or the only one."""
    return " to ".join(f"{each:,}" for each in dict.fromkeys((first, last)))


def _judged(step: Timed) -> Row:
    """change: the kind of what won most or should; saved: what that saves of the step, at least and
    at most; empty where that is nothing, or not known."""
    where = step.place
    ladder = ladder_at(where.data, where)
    change, saved = "graphs", _idle([step.step, ladder.plain.step if ladder else None], step.gpu)
    if step.limits != "launches":
        change, share = _best(ladder, step)
        saved = [share] if share > 0 else []
    same = {"size": where.size, "limited": step.limited}
    return same | {"timed": step, "change": change, "saved": saved}


def _idle(clocks: list[Maybe], alone: Maybe) -> list[float]:
    """What the GPU waits, of the clock's time: by the ends of its interval, and by those of the
    same step in a ladder, since both are this host's."""
    ends: list[float] = []
    for clock in filter(None, clocks):
        ends += clock.ends or [clock.value]
    if alone is None or not ends:
        return []
    return [max(1 - alone.value / min(ends), 0.0), 1 - alone.value / max(ends)]


def _best(ladder: Ladder | None, step: Timed) -> tuple[str, float]:
    """The change that won most in the ladder at the place, of its own first step, which was timed
    beside it; else the one that spares the bytes of most time. And what it saves, as a share."""
    where, whole = step.place, step.step
    optimizer = minus(where.optimizer_written, where.optimizer_fused)
    saved = {"sdpa": where.scores, "fused": optimizer}
    if ladder and ladder.gains and not ladder.is_starved:
        saved = {rung.kind: ladder.beyond(rung) for rung in ladder.gains}
        whole = ladder.plain.step
    change = max(saved, key=lambda name: value_of(saved[name]))
    return change, value_of(over(saved[change], whole))
