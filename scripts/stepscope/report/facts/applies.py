"""Does this apply to me: what limits every plain timed step, and which change helps it first."""

from collections.abc import Mapping

from stepscope.report.facts.ladders import Ladder, ladder_at
from stepscope.report.facts.machine import Place
from stepscope.report.facts.timed import Timed, in_bf16
from stepscope.report.kit.data import Data
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, minus, positive
from stepscope.results.option_labels import LABELS

ALIKE = 0.1  # shares of a step that are no further apart are as good as one


@frozen
class Applies:
    """Places of a size that the same thing limits and the same change helps first, up to that of
    `last`. saves: percent of the step, from the least to the most."""

    last: Timed
    contexts: str
    change: Name
    saves: str


@frozen
class Judged:
    """A plain timed step, the kind of the change that won most or should, and what that saves of
    the step, at least and at most."""

    timed: Timed
    change: str
    saved: tuple[float, float]


def rows(data: Data) -> list[Applies]:
    """Every plain timed step in bf16, neighbours of a size joined that have the same limit, first
    change and, as far as their ranges tell, share that it saves."""
    steps = sorted(in_bf16(data), key=lambda each: each.place.weight)
    groups: list[list[Judged]] = []
    for each in filter(None, map(_judged, steps)):
        if groups and _is_alike(groups[-1][0], each):
            groups[-1].append(each)
        else:
            groups.append([each])
    return list(map(_joined, groups))


def _is_alike(one: Judged, other: Judged) -> bool:
    """Whether a row can hold both."""
    what = [(each.timed.place.size, each.timed.limited, each.change) for each in (one, other)]
    apart = max(one.saved[0], other.saved[0]) - min(one.saved[1], other.saved[1])
    return what[0] == what[1] and apart < ALIKE


def _joined(group: list[Judged]) -> Applies:
    last = group[-1]
    saved = [round(100 * each) for judged in group for each in judged.saved]
    return Applies(
        last=last.timed,
        contexts=_span([each.timed.place.context for each in group]),
        change=Name(LABELS.get(last.change, last.change)),
        saves=_span([min(saved), max(saved)]),
    )


def _span(numbers: list[int]) -> str:
    """`128 to 512`, or the only one."""
    ends = dict.fromkeys((numbers[0], numbers[-1]))
    return " to ".join(f"{each:,}" for each in ends)


def _judged(step: Timed) -> Judged | None:
    where, clock = step.place, step.step
    if where.parameters is None or clock is None:
        return None
    ladder = ladder_at(where.data, where)
    if step.limits == "launches":
        idle = _idle([clock, ladder.plain.step if ladder else None], step.gpu)
        return Judged(timed=step, change="graphs", saved=idle) if idle else None
    # What a ladder won is a part of its own first step, timed beside it.
    won = _won(ladder) if ladder else None
    whole = ladder.plain.step if ladder and won else clock
    found = won or _spared(where)
    if found is None or whole is None:
        return None
    change, seconds = found
    saved = seconds.value / whole.value
    return Judged(timed=step, change=change, saved=(saved, saved))


def _idle(clocks: list[Maybe], alone: Maybe) -> tuple[float, float] | None:
    """What the GPU waits, of the clock's time: by the ends of its interval, and by those of the
    same step in a ladder, since both are this host's."""
    if alone is None:
        return None
    ends: list[float] = []
    for clock in filter(None, clocks):
        ends += clock.ends or [clock.value]
    least, most = (1 - alone.value / end for end in (min(ends), max(ends)))
    return max(least, 0.0), most


def _won(ladder: Ladder) -> tuple[str, Quantity] | None:
    """The change that won most in the ladder at the place."""
    if ladder.is_starved:
        return None
    return _most({rung.kind: ladder.beyond(rung) for rung in ladder.gains})


def _spared(where: Place) -> tuple[str, Quantity] | None:
    """The change that spares the bytes of most time."""
    optimizer = minus(where.optimizer_written, where.optimizer_fused)
    return _most({"sdpa": where.scores, "fused": optimizer})


def _most(saved: Mapping[str, Maybe]) -> tuple[str, Quantity] | None:
    """Of changes, and what each saves, that of most; None if that is nothing."""
    known = [(change, each) for change, each in saved.items() if each]
    best = max(known, key=lambda each: each[1].value, default=None)
    return best if best and positive(best[1]) else None
