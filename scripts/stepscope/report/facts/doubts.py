"""What to doubt in page one: cells that are missing or old, clocks that are known badly, formats
that compute something else."""

from functools import cached_property

from stepscope.report.facts import ladder as climbing
from stepscope.report.facts import method
from stepscope.report.facts.ladders import Ladder
from stepscope.report.facts.machine import Machine, Place, place
from stepscope.report.facts.rungs import Rung
from stepscope.report.kit.data import Data, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, is_below

LOOSE = 0.1  # half an interval that a reader should be told of
MOST = 3  # that are told


@frozen
class Doubts:
    """Of page one's ladder and of all cells. elsewhere: where the kernels were profiled, if not at
    its place."""

    data: Data
    machine: Machine
    ladder: Ladder | None
    elsewhere: Place | None

    @property
    def told(self) -> list[str]:
        """Those that weigh most, of those that there are."""
        found = {
            "missing": self.missing,
            "older": self.older,
            "loose": self.loosest,
            "coarse": self._is_top_coarse,
            "together": self.at_once,
            "hosts": self.hosts if not self.loosest else None,
            "elsewhere": self.elsewhere,
            "throttled": self.is_throttled,
        }
        return [name for name, value in found.items() if value][:MOST]

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

    @property
    def _cells(self) -> list[dict]:
        return self.data.dicts("cells")

    @cached_property
    def loosest(self) -> Maybe:
        """Half the widest interval of a rung, of its step, where that is wide."""
        step = self._loosest.step if self._loosest else None
        if step is None or step.half_width <= LOOSE:
            return None
        return Quantity(step.half_width, "share", cells=step.cells)

    @cached_property
    def loosest_rung(self) -> Name | None:
        """That rung."""
        return self._loosest.name if self._loosest else None

    @property
    def _loosest(self) -> Rung | None:
        rungs = self.ladder.rungs if self.ladder else ()
        return max(rungs, key=lambda rung: _half_width(rung.step), default=None)

    @property
    def _is_top_coarse(self) -> bool:
        return self.ladder is not None and self.ladder.top is self.ladder.coarse

    @cached_property
    def hosts(self) -> Maybe:
        """The plain step that launches limit which is known worst by the clock."""
        return of_series(self._hosts) if self._hosts else None

    @cached_property
    def hosts_place(self) -> Name | None:
        """Where."""
        where = place(self.data, self.machine, self._hosts, "bf16")
        return where.name if where else None

    @property
    def _hosts(self) -> dict:
        same = {"study": "timing", "precision": "bf16", "options": "", "limits": "launches"}
        rows = self.data.series(quantity="time", mode="step", phase="step", **same)
        loose = [row for row in rows if _half_width(of_series(row)) > LOOSE]
        return max(loose, key=lambda row: _half_width(of_series(row)), default={})

    @cached_property
    def is_throttled(self) -> bool:
        """Whether the card lowered its clock during the ladder."""
        climbed = climbing.facts(self.data)
        if self.ladder is None or climbed is None or not self.ladder.throttle:
            return False
        clock = next(iter(self.ladder.clocks), None)
        return clock is None or is_below(clock, climbed.highest_clock, climbing.HELD_BACK)


def _half_width(step: Maybe) -> float:
    return step.half_width if step else 0.0


def _some(rows: list[dict]) -> Maybe:
    return count(len(rows), *(row["cell"] for row in rows)) if rows else None
