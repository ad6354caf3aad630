"""What lowers a step's peak: the changes of a place's ladder, and checkpoints."""

from functools import cached_property

from stepscope.report.facts.ladders import Ladder, ladders
from stepscope.report.facts.machine import Machine, Place
from stepscope.report.facts.rungs import Rung, alone_gain
from stepscope.report.kit.data import Data
from stepscope.report.kit.named import frozen
from stepscope.report.kit.quantity import Maybe, exact, is_below, minus, over, value_of

CLEARLY = 0.99  # of the peak before: what needs less than that needs less
JUDGED = ("faster", "slower", "same")


@frozen
class Remedy:
    """A rung or aside: reserved bytes at the peak beside the closed form of what tensors ask for;
    its price in time."""

    rung: Rung
    saves: Maybe
    time: Maybe


@frozen
class Savings:
    """Of every change after a ladder's plain rung, by reserved bytes."""

    place: Place
    plain: Rung
    has_graphs: bool
    every: tuple[Remedy, ...]

    @cached_property
    def rows(self) -> tuple[Remedy, ...]:
        """All of them, the plain rung first; none of that alone."""
        return self.every if len(self.every) > 1 else ()

    @cached_property
    def fused(self) -> Remedy | None:
        """Attention that keeps no scores, if it needs clearly less."""
        by_kind = {each.rung.kind: each for each in self.every}
        fused = by_kind.get("sdpa") or by_kind.get("triton")
        is_less = fused is not None and is_below(fused.rung.peak, self.plain.peak, CLEARLY)
        return fused if is_less else None

    @cached_property
    def least(self) -> Remedy | None:
        """What reserves least, if it reserves less than plain."""
        least = min(self.every, key=lambda each: value_of(each.rung.peak))
        return least if value_of(least.saves) > 0 else None


@frozen
class Checkpoint:
    """The checkpoints on a plain step that need least, by allocated bytes: rungs in turns share
    what is reserved."""

    place: Place
    rung: Rung
    plain: Rung

    @cached_property
    def longer(self) -> Maybe:
        """How many times as long the step takes with them."""
        if self._alone:
            return self._alone
        is_judged = self.rung.verdict in JUDGED
        return exact(over(self.rung.step, self.plain.step)) if is_judged else None

    @cached_property
    def is_alone(self) -> bool:
        """Whether that is without the host."""
        return self._alone is not None

    @property
    def _alone(self) -> Maybe:
        return alone_gain(self.rung, self.plain)


def savings(data: Data, own: Machine, where: Place) -> Savings | None:
    """Of the place's ladder; None where there is none, or its memory was not measured."""
    at_place = (each for each in ladders(data, own) if each.place.key == where.key)
    ladder = next(at_place, None)
    if ladder is None or not ladder.plain.peak:
        return None
    plain = ladder.plain
    rungs = [rung for rung in (plain, *ladder.after_plain, *ladder.asides) if rung.peak]
    return Savings(
        place=ladder.place,
        plain=plain,
        has_graphs=ladder.rung("graphs") is not None,
        every=tuple(
            Remedy(rung=rung, saves=minus(plain.peak, rung.peak), time=rung.step) for rung in rungs
        ),
    )


def checkpoint(data: Data, own: Machine) -> Checkpoint | None:
    """Of the first ladder on whose plain step checkpoints save something."""
    return next(filter(None, map(_checkpoint, ladders(data, own))), None)


def _checkpoint(ladder: Ladder) -> Checkpoint | None:
    plain = ladder.plain
    on_plain = [rung for rung in ladder.asides if rung.after == plain.variant]
    tried = [rung for rung in on_plain if rung.kind.startswith("checkpoint") and rung.allocated]
    least = min(tried, key=lambda rung: value_of(rung.allocated), default=None)
    if least is None or not is_below(least.allocated, plain.allocated):
        return None
    return Checkpoint(place=ladder.place, rung=least, plain=plain)
