"""Mixed precision across the timing grid: each cell in 16 bits beside the fp32 cell of the same point."""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from stepscope.report.data.repeats import spreads, typical_spreads
from stepscope.report.kit.compare import Comparison, by_fields, compare, pairs, timed
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import machine_labels, ordered, precision_rank, with_order
from stepscope.tables.reader import Tables

REFERENCE = "fp32"
MIXED = ("bf16", "fp16")
# Column of the timing table → what it is called. Forward, backward and optimizer are of steps that synchronise after
# each phase, inference and step of free ones.
PHASES = {name: name for name in ("inference", "forward", "backward", "optimizer", "step")}
_POINT = ("hardware", "size", "context", "batch", "mode", "options")


@dataclass(frozen=True)
class Pair:
    """A cell in 16 bits and the fp32 cell of the same point, rows of the timing table; the speed of each phase."""

    row: dict
    reference: dict
    speeds: dict[str, Comparison]

    @property
    def precision(self) -> str:
        return self.row["precision"]

    @property
    def point(self) -> str:
        """`medium at 512`."""
        return f"{self.row['size']} at {self.row['context']:,.0f}"

    def status(self, phase: str) -> tuple[str | None, str | None]:
        """What became of a phase in fp32 and in 16 bits."""
        return tuple(row.get(f"{phase}_status") for row in (self.reference, self.row))

    def peaks(self, phase: str) -> tuple[float | None, float | None]:
        """Bytes at the peak of a mode in fp32 and in 16 bits: allocated on a GPU, resident on a CPU; None unless both
        finished."""
        if self.status(phase) != ("ok", "ok"):
            return None, None
        for name in ("allocated", "resident"):
            found = tuple(row.get(f"{phase}_peak_{name}_bytes") for row in (self.reference, self.row))
            if all(map(known, found)):
                return found
        return None, None


def judged(speeds: Iterable[Comparison]) -> str:
    """What faster and slower are judged by, where it is not the spread between repeated runs."""
    return "" if all(speed.by_repeats for speed in speeds) else " (single runs, disjoint 95 % intervals)"


class Mixed:
    """The pairs of the timing table, in the order of hardware, precision, parameters and context."""

    def __init__(self, tables: Tables):
        self.timing = with_order(tables["timing"])
        repeated = spreads(self.timing)
        self._typical = {phase: typical_spreads(repeated, phase) for phase in PHASES}
        self.pairs = self._pairs() if len(self.timing) and {"precision", "context"} <= set(self.timing) else []

    @property
    def hardware(self) -> list[str]:
        """The machines that have pairs."""
        return machine_labels([pair.row["hardware"] for pair in self.pairs])

    def of(self, hardware: str, precision: str | None = None) -> list[Pair]:
        """A machine's pairs, of one precision or of all."""
        own = [pair for pair in self.pairs if pair.row["hardware"] == hardware]
        return [pair for pair in own if precision in (None, pair.precision)]

    def precisions(self, hardware: str) -> list[str]:
        """The precisions that a machine's cells have beside fp32."""
        return ordered([pair.precision for pair in self.of(hardware)], key=precision_rank)

    def _pairs(self) -> list[Pair]:
        first = self.timing[self.timing["repeat"] == 1].to_dict("records")
        return [
            Pair(row, reference, self._speeds(row, reference))
            for row, reference in pairs(first, "precision", REFERENCE, by_fields(*_POINT))
            if row["precision"] in MIXED
        ]

    def _speeds(self, row: dict, reference: dict) -> dict[str, Comparison]:
        made = {phase: self.speed(row, reference, phase) for phase in PHASES}
        return {phase: speed for phase, speed in made.items() if speed}

    def speed(self, row: dict, reference: dict, phase: str) -> Comparison | None:
        """How many times as fast `row` is as `reference` in a phase; None unless both have a time."""
        spreads_of_both = self._spread(row, phase), self._spread(reference, phase)
        return compare(timed(row, f"{phase}_"), timed(reference, f"{phase}_"), spreads_of_both)

    def _spread(self, row: dict, phase: str) -> float | None:
        """The largest difference between runs of the machine and precision in a phase, as a share; None unrepeated."""
        return self._typical[phase].get((row["hardware"], row["precision"]))


def speeds_frame(mixed: Mixed) -> pd.DataFrame:
    """A row a pair and phase, for figures: hardware, size, parameters, context, batch, options, precision, phase,
    ratio, low, high; `lost` where one of both ran out of memory."""
    rows = []
    for pair in mixed.pairs:
        key = {name: pair.row.get(name) for name in (*_POINT, "parameters", "precision")}
        for phase in PHASES:
            speed = pair.speeds.get(phase)
            if speed:
                rows.append({**key, "phase": phase, "ratio": speed.ratio, "low": speed.low, "high": speed.high})
            elif "oom" in pair.status(phase):
                rows.append({**key, "phase": phase, "lost": True})
    columns = [*_POINT, "parameters", "precision", "phase", "ratio", "low", "high", "lost"]
    return pd.DataFrame(rows, columns=columns)
