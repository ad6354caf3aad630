"""Precisions across the timing grid: each cell in another one beside the fp32 cell of the same point."""

from dataclasses import dataclass

import pandas as pd

from stepscope import axes
from stepscope.report.data.bound import LAUNCH_BOUND, occupation
from stepscope.report.data.control import floors
from stepscope.report.data.own_models import is_own
from stepscope.report.data.profile import Profile
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit.compare import Comparison, Floors, by_fields, judged, pairs, timed
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
    """A cell and the fp32 cell of the same point, rows of the timing table; the speed of each phase over fp32's."""

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
        """That of its Comparison; None where one of both has no time."""
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
    """The pairs of the timing table, in the order of hardware, precision, parameters and context.

    every: of all precisions but fp32; pairs: of those in 16 bits. floors: the run's control.
    """

    def __init__(self, tables: Tables):
        self.timing = with_order(tables["timing"])
        self.floors = floors(self.timing)
        self.every = over_fp32(self.timing, self.floors)
        self.pairs = [pair for pair in self.every if pair.precision in MIXED]

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


def over_fp32(timing: pd.DataFrame, floors: Floors) -> list[MixedPair]:
    """The pairs of a timing table; all phases of one machine and precision are judged together."""
    if timing.empty or not {"precision", "context"} <= set(timing):
        return []
    first = timing[timing["repeat"] == 1].to_dict("records")
    both = list(pairs(first, "precision", REFERENCE, by_fields(*_POINT)))
    families: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for at, (row, _) in enumerate(both):
        families.setdefault((row["hardware"], row["precision"]), []).extend((at, phase) for phase in axes.PHASES)
    speeds: list[dict[str, Comparison]] = [{} for _ in both]
    for family in families.values():
        series = [tuple(timed(row, f"{phase}_") for row in both[at]) for at, phase in family]
        for (at, phase), found in zip(family, judged(series, floors), strict=True):
            if found:
                speeds[at][phase] = found
    return [MixedPair(row, reference, own) for (row, reference), own in zip(both, speeds, strict=True)]


def speeds_frame(mixed: Mixed) -> pd.DataFrame:
    """A row a pair and phase, for figures: hardware, size, parameters, context, batch, options, precision, phase,
    ratio, low, high; `lost` where one of both ran out of memory, `apart` where it is of a model of one's own."""
    rows = []
    for pair in mixed.pairs:
        key = {name: pair.row.get(name) for name in (*_POINT, "parameters", "precision")} | {"apart": is_own(pair.row)}
        for phase in PHASES:
            speed = pair.speeds.get(phase)
            if speed:
                rows.append({**key, "phase": phase, "ratio": speed.ratio, "low": speed.low, "high": speed.high})
            elif "oom" in pair.status(phase):
                rows.append({**key, "phase": phase, "lost": True})
    columns = [*_POINT, "parameters", "precision", "apart", "phase", "ratio", "low", "high", "lost"]
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
