"""What lowers a step's peak: the changes of a place's ladder."""

from functools import cached_property

from stepscope.report.facts.ladders import Ladder, ladder_at
from stepscope.report.facts.machine import Place
from stepscope.report.kit.data import Data, Row
from stepscope.report.kit.named import frozen
from stepscope.report.kit.quantity import is_below, least, minus, positive

CLEARLY = 0.99  # of the peak before: what needs less than that needs less


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


def savings(data: Data, where: Place) -> Savings | None:
    """Of the place's ladder; None where there is none, or its memory was not measured."""
    ladder = ladder_at(data, where)
    return Savings(data=ladder) if ladder and ladder.plain.peak else None
