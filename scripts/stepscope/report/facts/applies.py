"""Does this apply to me: what limits every plain timed step, and which change helps it first."""

from stepscope.report.facts.ladders import Ladder, ladders
from stepscope.report.facts.machine import Machine, Place, place
from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, minus, value_of
from stepscope.results.option_labels import LABELS


@frozen
class Applies:
    """Places of a size that the same thing limits and the same change helps first.

    step: at the last of them. saves: percent of the step, from the least to the most.
    """

    size: Name
    parameters: Maybe
    contexts: str
    limits: str
    step: Maybe
    change: Name
    saves: str


@frozen
class Judged:
    """A plain timed step, what limits it, the kind of the change that won most or should, and what
    that saves of the step, at least and at most."""

    place: Place
    step: Quantity
    limits: str
    change: str
    saved: tuple[float, float]


def rows(data: Data, own: Machine) -> tuple[Applies, ...]:
    """Every plain timed step in bf16, neighbours of a size with the same limit and first change
    joined."""
    same = {"study": "timing", "precision": "bf16", "options": "", "mode": "step"}
    steps = data.series(quantity="time", phase="step", **same)
    judged = [made for row in steps if (made := _judged(data, own, row))]
    judged.sort(key=_size)
    groups: dict[tuple[str, str, str], list[Judged]] = {}
    for each in judged:
        groups.setdefault((each.place.size, each.limits, each.change), []).append(each)
    return tuple(map(_joined, groups.values()))


def _size(judged: Judged) -> tuple[float, int]:
    return value_of(judged.place.parameters), judged.place.context


def _joined(group: list[Judged]) -> Applies:
    last = group[-1]
    saved = [each for judged in group for each in judged.saved]
    return Applies(
        size=last.place.size,
        parameters=last.place.parameters,
        contexts=_span([each.place.context for each in group]),
        limits=last.limits.replace("gpu", "GPU"),
        step=last.step,
        change=Name(LABELS.get(last.change, last.change)),
        saves=_span([_percent(min(saved)), _percent(max(saved))]),
    )


def _span(numbers: list[int]) -> str:
    """`128 to 512`, or the only one."""
    return f"{numbers[0]:,}" if numbers[0] == numbers[-1] else f"{numbers[0]:,} to {numbers[-1]:,}"


def _percent(saved: float) -> int:
    return round(100 * saved)


def _judged(data: Data, own: Machine, row: dict) -> Judged | None:
    where, step = place(data, own, row, row["precision"]), of_series(row)
    if where is None or where.parameters is None or step is None:
        return None
    ladder = next((each for each in ladders(data, own) if each.place.key == where.key), None)
    if row["limits"] == "launches":
        alone = data.measured("alone_time", cell=row["cell"], mode="step", phase="step")
        best = ("graphs", _idle([step, ladder.plain.step if ladder else None], alone))
    else:
        won = (_won(ladder) if ladder else None) or _spared(where)
        best = (won[0], (won[1].value / step.value,) * 2) if won else ("", None)
    change, saved = best
    if saved is None:
        return None
    return Judged(place=where, step=step, limits=row["limits"], change=change, saved=saved)


def _idle(clocks: list[Maybe], alone: Maybe) -> tuple[float, float] | None:
    """What the GPU waits, of the clock's time: by the ends of its interval, and by those of the
    same step in a ladder, since both are this host's."""
    if alone is None:
        return None
    ends = [end for each in clocks if each for end in each.ends or (each.value, each.value)]
    return max(1 - alone.value / min(ends), 0.0), 1 - alone.value / max(ends)


def _won(ladder: Ladder) -> tuple[str, Quantity] | None:
    """The change that won most in the ladder at the place."""
    if ladder.is_starved or not ladder.gains:
        return None
    won = {rung.kind: ladder.beyond(rung) for rung in ladder.gains}
    change = max(won, key=lambda kind: won[kind].value)
    return (change, won[change]) if won[change].value > 0 else None


def _spared(where: Place) -> tuple[str, Quantity] | None:
    """The change that spares the bytes of most time."""
    optimizer = minus(where.optimizer_written, where.optimizer_fused)
    spared = {"sdpa": where.scores, "fused": optimizer}
    known = {change: saved for change, saved in spared.items() if saved}
    change = max(known, key=lambda each: known[each].value, default=None)
    return (change, known[change]) if change else None
