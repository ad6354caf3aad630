"""What lowers a step's peak: the changes of a place's ladder, and checkpoints."""

from functools import cached_property

from stepscope.report.facts.ladders import Ladder, ladder_at, ladders
from stepscope.report.facts.machine import Place
from stepscope.report.facts.rungs import Rung, alone_gain
from stepscope.report.kit.data import Data, Row
from stepscope.report.kit.named import first_of, frozen
from stepscope.report.kit.quantity import Maybe, exact, is_below, least, minus, over, positive

CLEARLY = 0.99  # of the peak before: what needs less than that needs less
JUDGED = ("faster", "slower", "same")


@frozen
class Savings:
    """Of every change after a ladder's plain rung, by reserved bytes."""

    data: Ladder

    @cached_property
    def place(self) -> Place:
        """The ladder's."""
        return self.data.place

    @cached_property
    def rows(self) -> list[Row]:
        """All of them, and what less each reserves, the plain rung first; none of that alone."""
        plain = self.data.plain
        rungs = [rung for rung in (plain, *self.data.after_plain, *self.data.asides) if rung.peak]
        every = [{"rung": rung, "saves": minus(plain.peak, rung.peak)} for rung in rungs]
        return every if len(every) > 1 else []

    @cached_property
    def fused(self) -> Row | None:
        """Attention that keeps no scores, if it needs clearly less."""
        by_kind = {row["rung"].kind: row for row in self.rows}
        fused = by_kind.get("sdpa") or by_kind.get("triton")
        is_less = fused and is_below(fused["rung"].peak, self.data.plain.peak, CLEARLY)
        return fused if is_less else None

    @cached_property
    def least(self) -> Row | None:
        """What reserves least, if it reserves less than plain."""
        row = least(self.rows, "rung.peak")
        return row if row and positive(row["saves"]) else None


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


def savings(data: Data, where: Place) -> Savings | None:
    """Of the place's ladder; None where there is none, or its memory was not measured."""
    ladder = ladder_at(data, where)
    return Savings(data=ladder) if ladder and ladder.plain.peak else None


def checkpoint(data: Data) -> Checkpoint | None:
    """Of the first ladder on whose plain step checkpoints save something."""
    return first_of(filter(None, map(_checkpoint, ladders(data))))


def _checkpoint(ladder: Ladder) -> Checkpoint | None:
    plain = ladder.plain
    on_plain = [rung for rung in ladder.asides if rung.after == plain.variant]
    tried = [rung for rung in on_plain if rung.kind.startswith("checkpoint")]
    rung = least(tried, "allocated")
    if rung is None or not is_below(rung.allocated, plain.allocated):
        return None
    return Checkpoint(place=ladder.place, rung=rung, plain=plain)
