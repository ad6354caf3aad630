"""What to doubt in page one: cells that are missing or old, clocks that are known badly, formats
that compute something else."""

from functools import cached_property

from stepscope.report.facts import ladder as climbing
from stepscope.report.facts import learning, method
from stepscope.report.facts.ladders import Ladder
from stepscope.report.facts.machine import Chapter, Place
from stepscope.report.facts.rungs import Rung
from stepscope.report.facts.timed import Timed, timed
from stepscope.report.kit.data import Row
from stepscope.report.kit.named import first_of, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, is_below, joined, value_of

LOOSE = 0.1  # half an interval that a reader should be told of
MOST = 3  # that are told


@frozen
class Doubts(Chapter):
    """Of page one's ladder and of all cells. elsewhere: where the kernels were profiled, if not at
    its place."""

    ladder: Ladder | None
    elsewhere: Place | None

    @property
    def told(self) -> list[str]:
        """Those that weigh most, of those that there are."""
        found = {
            "missing": self.missing,
            "older": self.older,
            "loose": self.loosest,
            "coarse": self.ladder and self.ladder.top is self.ladder.coarse,
            "card": self.slower,
            "together": self.at_once,
            "hosts": self.hosts if not self.loosest else None,
            "elsewhere": self.elsewhere,
            "throttled": self.is_throttled,
        }
        return [name for name, value in found.items() if value][:MOST]

    @cached_property
    def trained(self) -> Row | None:
        """The coarse rung's precision as the learning study trained it."""
        trained = learning.facts(self.data)
        coarse = self.ladder.coarse if self.ladder else None
        return trained.of(coarse.kind) if trained and coarse else None

    @cached_property
    def planned(self) -> Maybe:
        """Cells."""
        return count(len(self._cells))

    @cached_property
    def missing(self) -> Maybe:
        """Of them."""
        return _some([row for row in self._cells if row["status"] == "missing"])

    @cached_property
    def older(self) -> Maybe:
        """Of them, those that other code measured."""
        ran = [row for row in self._cells if row["status"] == "ok"]
        return _some([row for row in ran if not row["is_current"]])

    @cached_property
    def at_once(self) -> Maybe:
        """On how many GPUs they ran at a time."""
        return method.at_once(self._cells)

    @cached_property
    def slower(self) -> Row | None:
        """What the card does slower than all others of its type that are known, of several."""
        rows = method.beside_others(self.data)
        slower = (row for row in rows if row["standing"] == "slower")
        return first_of(row for row in slower if value_of(row["cards"]) > 1)

    @property
    def _cells(self) -> list[Row]:
        return self.data.dicts("cells")

    @cached_property
    def loosest(self) -> Maybe:
        """Half the widest interval of a rung, of its step, where that is wide."""
        rung = self.loosest_rung
        if rung is None or _half_width(rung) <= LOOSE:
            return None
        return Quantity(_half_width(rung), "share", cells=joined(rung.step))

    @property
    def loosest_rung(self) -> Rung | None:
        """That rung."""
        return max(self.ladder.rungs if self.ladder else [], key=_half_width, default=None)

    @cached_property
    def hosts(self) -> Timed | None:
        """The plain step that launches limit which is known worst by the clock."""
        limited = timed(self.data, precision="bf16", limits="launches")
        loose = [each for each in limited if _half_width(each) > LOOSE]
        return max(loose, key=_half_width, default=None)

    @cached_property
    def is_throttled(self) -> bool:
        """Whether the card lowered its clock during the ladder."""
        climbed = climbing.facts(self.data)
        if self.ladder is None or climbed is None or not self.ladder.throttle:
            return False
        clock = first_of(self.ladder.clocks)
        return clock is None or is_below(clock, climbed.highest_clock, climbing.HELD_BACK)


def _half_width(measured: Rung | Timed) -> float:
    return measured.step.half_width if measured.step else 0.0


def _some(rows: list[Row]) -> Maybe:
    return count(len(rows), *(row["cell"] for row in rows)) if rows else None
