"""Mixed precision across the timing grid: each cell in 16 bits beside the fp32 cell of the same point."""

from dataclasses import dataclass

import pandas as pd

from stepscope import axes
from stepscope.report.data.bound import LAUNCH_BOUND, occupation
from stepscope.report.data.profile import Profile
from stepscope.report.data.repeats import spreads, typical_spreads
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit.compare import Comparison, by_fields, compare, pairs, timed
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import machine_labels, ordered, precision_rank, with_order
from stepscope.tables.reader import Tables

REFERENCE = "fp32"
MIXED = tuple(name for name, precision in axes.PRECISIONS.items() if precision.is_autocast)
# Column of the timing table → what it is called. Forward, backward and optimizer are of steps that synchronise after
# each phase, inference and step of free ones.
PHASES = {name: words for name, words in axes.PHASES.items() if name != "forward_backward"}
_POINT = ("hardware", "size", "context", "batch", "mode", "options")


@dataclass(frozen=True)
class MixedPair:
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

    @property
    def cells(self) -> tuple[str, str]:
        """The names of both cells, that in fp32 first."""
        return self.reference["cell"], self.row["cell"]

    def verdict(self, phase: str) -> str | None:
        """FASTER, SLOWER or UNCLEAR; None where one of both has no time."""
        return self.speeds[phase].verdict if phase in self.speeds else None

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

    def of(self, hardware: str, precision: str | None = None) -> list[MixedPair]:
        """A machine's pairs, of one precision or of all."""
        own = [pair for pair in self.pairs if pair.row["hardware"] == hardware]
        return [pair for pair in own if precision in (None, pair.precision)]

    def precisions(self, hardware: str) -> list[str]:
        """The precisions that a machine's cells have beside fp32."""
        return ordered([pair.precision for pair in self.of(hardware)], key=precision_rank)

    def _pairs(self) -> list[MixedPair]:
        first = self.timing[self.timing["repeat"] == 1].to_dict("records")
        return [
            MixedPair(row, reference, self._speeds(row, reference))
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


@dataclass(frozen=True)
class Bound:
    """What the profile study says of a point: kernel launches, and how long the GPU waits for them.

    Of the nearest profiled cells in fp32 and in 16 bits: kernels a step, and the idle share of the unprofiled step.
    where: `context 256` and, if another one, the precision of the second cell; empty where none was profiled.
    """

    kernels: tuple[float | None, float | None] = (None, None)
    idle: tuple[float | None, float | None] = (None, None)
    where: str = ""
    cells: tuple[str, ...] = ()

    @property
    def launch_bound(self) -> bool:
        """Whether the step in 16 bits waits for the host there."""
        return self.idle[1] is not None and self.idle[1] > 1 - LAUNCH_BOUND


def bound(profile: Profile, pair: MixedPair) -> Bound:
    """The nearest profiled cells of the same machine, size and precision, nearest in context."""
    before = _nearest(profile, pair.row, (REFERENCE,))
    after = _nearest(profile, pair.row, (pair.precision, *MIXED))
    cells = [each for each in (before, after) if each]
    if not cells:
        return Bound()
    contexts = list(dict.fromkeys(f"{each['context']:,.0f}" for each in cells))
    other = f" in {after['precision']}" if after and after["precision"] != pair.precision else ""
    return Bound(
        tuple(_kernels(profile, each) for each in (before, after)),
        tuple(_idle(profile, each) for each in (before, after)),
        f"context {' and '.join(contexts)}{other}",
        tuple(each["cell"] for each in cells),
    )


def _nearest(profile: Profile, row: dict, precisions: tuple[str, ...]) -> dict | None:
    """A profiled whole step: of the first of the precisions that has one, the nearest in context."""
    same = [
        cell
        for cell in profile.profiled()
        if all(cell.get(key) == row.get(key) for key in ("hardware", "size", "batch", "options"))
        and mode(cell) == "step"
        and known(cell.get("context"))
    ]
    for precision in precisions:
        own = [cell for cell in same if cell["precision"] == precision]
        if own:
            return min(own, key=lambda cell: (abs(cell["context"] - row["context"]), cell["context"], cell["repeat"]))
    return None


def _kernels(profile: Profile, cell: dict | None) -> float | None:
    found = profile.row("phases", cell["cell"], phase="step").get("kernels_per_step") if cell else None
    return found if known(found) else None


def _idle(profile: Profile, cell: dict | None) -> float | None:
    found = occupation(profile, cell) if cell else None
    return max(0.0, 1 - found.share) if found else None
