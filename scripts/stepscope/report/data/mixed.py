"""Mixed precision across the timing grid: each cell in 16 bits beside the fp32 cell of the same point."""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from stepscope.report.data.repeats import spreads, typical_spreads, verdict
from stepscope.report.kit.formatting import known
from stepscope.report.tables import Tables, machine_labels, ordered, precision_rank, with_order

REFERENCE = "fp32"
MIXED = ("bf16", "fp16")
# Column of the timing table → what it is called. Forward, backward and optimizer are of steps that synchronise after
# each phase, inference and step of free ones.
PHASES = {name: name for name in ("inference", "forward", "backward", "optimizer", "step")}
_POINT = ("hardware", "size", "context", "batch", "mode", "options")


@dataclass(frozen=True)
class Speed:
    """fp32's time over the time in 16 bits, with the ends that the two 95 % intervals allow; and what may be said.

    verdict: `faster`, `slower` or `equal`; by_repeats: decided by the spread between repeated runs of both, else the
    intervals must not overlap, nor may the difference be within the spread of the one that was repeated. times: ms, of
    fp32 and in 16 bits.
    """

    ratio: float
    low: float
    high: float
    verdict: str
    by_repeats: bool
    times: tuple[float, float]


@dataclass(frozen=True)
class Pair:
    """A cell in 16 bits and the fp32 cell of the same point, rows of the timing table; the speed of each phase."""

    row: dict
    reference: dict
    speeds: dict[str, Speed]

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


def judged(speeds: Iterable[Speed]) -> str:
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
        found = {_key(row): row for row in first if row["precision"] == REFERENCE}
        return [
            Pair(row, found[_key(row)], self._speeds(row, found[_key(row)]))
            for row in first
            if row["precision"] in MIXED and _key(row) in found
        ]

    def _speeds(self, row: dict, reference: dict) -> dict[str, Speed]:
        made = {phase: self.speed(row, reference, phase) for phase in PHASES}
        return {phase: speed for phase, speed in made.items() if speed}

    def speed(self, row: dict, reference: dict, phase: str) -> Speed | None:
        """How many times as fast `row` is as `reference` in a phase; None unless both have a time."""
        own, other = (each.get(f"{phase}_median_ms") for each in (row, reference))
        if not (known(own) and known(other) and own > 0 and other > 0):
            return None
        (low, high), (other_low, other_high) = (_interval(each, phase) for each in (row, reference))
        spread = self._spread(row, phase), self._spread(reference, phase)
        by_repeats = None not in spread
        word = verdict(other, own, sum(each or 0.0 for each in spread))
        if not by_repeats and not (high < other_low or low > other_high):
            word = "equal"
        return Speed(other / own, other_low / high, other_high / low, word, by_repeats, (other, own))

    def _spread(self, row: dict, phase: str) -> float | None:
        """The largest difference between runs of the machine and precision in a phase, as a share; None unrepeated."""
        return self._typical[phase].get((row["hardware"], row["precision"]))


def _key(row: dict) -> tuple:
    return tuple(row.get(name) for name in _POINT)


def _interval(row: dict, phase: str) -> tuple[float, float]:
    """The median's interval; the median itself where there is none."""
    ends = (row.get(f"{phase}_ci_low_ms"), row.get(f"{phase}_ci_high_ms"))
    return ends if all(map(known, ends)) and min(ends) > 0 else (row[f"{phase}_median_ms"],) * 2


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
