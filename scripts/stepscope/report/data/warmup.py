"""The warm-up study's cells as the report needs them: the runs of one size, and settings of several sizes."""

import json
import math
from dataclasses import dataclass

import pandas as pd

from stepscope.confidence import FALSE_DISCOVERIES, Difference, Spread
from stepscope.report.data.control import floors
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import Floors, Timed
from stepscope.report.kit.order import label, machine_labels, ordered, precision_rank, with_order
from stepscope.tables.reader import Tables
from stepscope.tables.warmup import PARTS, PHASES, SET_UP

SAMPLES = ["cell", "step", "phase", "warmup", "seconds"]
CLOSE = 0.05  # a mean is as good as the steady state if it differs by no more than this share of it


@dataclass(frozen=True)
class SizeRuns:
    """A size at a setting: a row for each number of warm-up steps, ascending, and one with the profiled first step.

    floors: what unchanged cells of the run differ by.
    """

    size: str
    parameters: float
    timed: tuple[dict, ...]
    profiled: dict | None
    floors: Floors

    @property
    def measured(self) -> list[dict]:
        """The rows that have a mean."""
        return [row for row in self.timed if formatting.known(row.get("step_mean_ms"))]

    @property
    def lost(self) -> list[dict]:
        """The rows that ran out of memory."""
        return [row for row in self.timed if row["status"] == "oom"]

    @property
    def cold(self) -> dict | None:
        """The row without any warm-up; None if it has no result."""
        return next((row for row in self.measured if row["warmup"] == 0), None)

    def steady(self, phase: str) -> float | None:
        """The phase's steady state, ms."""
        state = self.steady_state(phase)
        return state.median if state else None

    def steady_state(self, phase: str) -> Timed | None:
        """The phase's steady state with its interval between processes; None without one."""
        row = self._steady_row(phase)
        return steady_of(row, phase) if row else None

    def is_unsteady(self, phase: str) -> bool:
        """Whether the steady state's processes differ by more than chance allows in its class."""
        row = self._steady_row(phase)
        return row is not None and row.get(f"{phase}_steady_unsteady") is True

    def _steady_row(self, phase: str) -> dict | None:
        return next((row for row in self.measured if formatting.known(row.get(f"{phase}_steady_ms"))), None)

    @property
    def width(self) -> float | None:
        """Half the interval of the steady step over it; None without an interval."""
        state = self.steady_state("step")
        return (state.high - state.low) / 2 / state.median if state and state.has_interval else None

    @property
    def is_settled(self) -> bool:
        """Whether the steady step is known so well that a mean can be called close to it."""
        return self.width is not None and self.width <= CLOSE

    def is_beyond(self, phase: str, ratio: float | None) -> bool | None:
        """Whether one process's time over the steady state is off by more than one fresh process from others.

        By Student's prediction interval, beyond the margin up to which times count as the same. None where that is not
        known, as with a steady state of one process.
        """
        state = self.steady_state(phase)
        if state is None or state.spread is None or not state.has_interval or not formatting.known(ratio):
            return None
        if ratio <= 0:
            return True
        error = state.spread.deviation * math.sqrt(1 + 1 / state.processes)
        off = Difference(math.log(ratio), error, state.spread.degrees)
        return off.p_beyond(self.floors.margin(state)) <= FALSE_DISCOVERIES

    def enough(self, phase: str) -> float | None:
        """The fewest warm-up steps from which on every mean is CLOSE to the steady state; None if no number is."""
        found = None
        for row in reversed(self.measured):
            ratio = row[f"{phase}_mean_over_steady"]
            if not formatting.known(ratio) or abs(ratio - 1) > CLOSE:
                break
            found = row["warmup"]
        return found

    def excess(self, phase: str) -> float | None:
        """What the unprofiled first step takes above the steady state, ms."""
        steady, first = self.steady(phase), (self.cold or {}).get(f"{phase}_first_ms")
        return first - steady if formatting.known(first) and steady is not None else None

    def is_first_beyond(self, phase: str) -> bool | None:
        """is_beyond() of the unprofiled first step."""
        steady, first = self.steady(phase), (self.cold or {}).get(f"{phase}_first_ms")
        return self.is_beyond(phase, first / steady) if formatting.known(first) and steady else None


def steady_of(row: dict, phase: str) -> Timed:
    """The steady state of a row's point in a phase, ms."""
    fields = {name: row.get(f"{phase}_steady_{name}") for name in ("ci_low_ms", "ci_high_ms", "spread")}
    low, high, deviation = (value if formatting.known(value) else None for value in fields.values())
    return Timed(
        row[f"{phase}_steady_ms"],
        low,
        high,
        processes=int(row.get("steady_processes") or 1),
        spread=None if deviation is None else Spread(deviation, int(row[f"{phase}_steady_spread_degrees"])),
        hardware=row["hardware"],
        limited_by=row.get(f"{phase}_steady_limited_by"),
        clock_mhz=clock if formatting.known(clock := row.get("sm_clock_median_mhz")) else None,
        host=tuple(row[name] for name in ("host_python_ms", "host_launches_ms") if formatting.known(row.get(name))),
    )


@dataclass(frozen=True)
class Setting:
    """Points that differ in their size alone."""

    hardware: str
    context: float
    precision: str
    batch: float
    options: str
    repeat: int
    points: tuple[SizeRuns, ...]

    @property
    def title(self) -> str:
        """`context 128, fp32, batch 4`."""
        parts = [f"context {self.context:,.0f}", self.precision, f"batch {self.batch:,.0f}"]
        return ", ".join(parts + [self.options] * bool(self.options) + [f"run {self.repeat}"] * (self.repeat > 1))

    @property
    def measured(self) -> list[SizeRuns]:
        """The points of which some cell has a mean."""
        return [point for point in self.points if point.measured]


class Warmups:
    """All that the report reads of the study."""

    def __init__(self, tables: Tables):
        self.tables = tables
        self.cells = with_order(tables["warmup"])
        self.settings = _settings(self.cells, floors(with_order(tables["timing"])))
        self.hardware = machine_labels(self.cells["hardware"]) if len(self.cells) else []
        self.measured = [setting for setting in self.settings if setting.measured]

    @property
    def steps(self) -> str:
        """How many steps were measured in a cell: `10`."""
        return formatting.listing([formatting.count(value) for value in ordered(self.cells["steps"])])

    def of(self, hardware: str) -> list[Setting]:
        """The settings of a machine."""
        return [setting for setting in self.settings if setting.hardware == hardware]

    def place(self, setting: Setting) -> str:
        """`context 128, fp32, batch 4`, and where, if there are several machines."""
        return setting.title + (f", on {setting.hardware}" if len(self.hardware) > 1 else "")

    def samples(self, point: SizeRuns) -> pd.DataFrame:
        """The raw samples of the point's cells without a profiler."""
        return self.tables.samples("warmup", [row["cell"] for row in point.measured], SAMPLES)


def _settings(cells: pd.DataFrame, of_run: Floors) -> list[Setting]:
    if cells.empty:
        return []
    axes = ["hardware", "context", "precision", "batch", "options", "repeat"]
    found = []
    for values, own in cells.groupby(axes, sort=False):
        points = [_point(size, part, of_run) for size, part in own.groupby("size", sort=False)]
        found.append(Setting(*values, tuple(points)))
    order = machine_labels(each.hardware for each in found)
    return sorted(found, key=lambda each: (order.index(each.hardware), precision_rank(each.precision), each.context))


def _point(size: str, part: pd.DataFrame, of_run: Floors) -> SizeRuns:
    rows = part.sort_values("warmup", kind="stable").to_dict("records")
    timed = [row for row in rows if not is_profiled(row)]
    profiled = next((row for row in rows if is_profiled(row)), None)
    return SizeRuns(size, float(part["parameters"].max()), tuple(timed), profiled, of_run)


def is_profiled(row: dict) -> bool:
    """Is it the row of a process that ran its first step under the profiler?"""
    return row.get("first") == "profiled"


def profiled_excess(row: dict | None) -> float | None:
    """What the profiled first step takes above the profiled steady one, ms."""
    return difference(row, "profiled")


def part_excess(row: dict | None, part: str) -> float | None:
    """What a part of the profiled first step takes above the same part of the steady one, ms."""
    return difference(row, PARTS[part])


def set_up_excess(row: dict | None) -> float | None:
    """The excess of the parts of set-up together, ms; of those that the record knows."""
    parts = [value for part in SET_UP if (value := part_excess(row, part)) is not None]
    return sum(parts) if parts else None


def difference(row: dict | None, prefix: str) -> float | None:
    """First less steady, ms."""
    first, steady = ((row or {}).get(f"{prefix}_{which}_ms") for which in ("first", "steady"))
    return first - steady if formatting.known(first) and formatting.known(steady) else None


def largest(row: dict | None) -> list[dict]:
    """The host events with the largest differences: name, part, seconds and calls in both steps."""
    text = (row or {}).get("largest")
    return json.loads(text) if isinstance(text, str) else []


def phase_names() -> list[tuple[str, str]]:
    """(column prefix, its name) of each phase."""
    return [(phase, label(phase)) for phase in PHASES]


def profiled_points(setting: Setting) -> list[SizeRuns]:
    """The points whose first step was profiled."""
    return [point for point in setting.points if profiled_excess(point.profiled) is not None]


def by_step(samples: pd.DataFrame) -> pd.DataFrame:
    """A row a phase and step: median, lowest and highest ms over the processes, and how many `processes`.

    The samples are raw ones (seconds) of several cells; `step` is the sum of the phases where a step has all.
    """
    columns = ["phase", "step", "median", "low", "high", "processes"]
    if samples.empty:
        return pd.DataFrame(columns=columns)
    wide = samples.pivot_table(index=["cell", "step"], columns="phase", values="seconds") * 1e3
    wide = wide.reindex(columns=list(PHASES["step"]))
    wide["step"] = wide.sum(axis=1, skipna=False)
    long = wide.melt(var_name="phase", value_name="ms", ignore_index=False).dropna().reset_index()
    found = long.groupby(["phase", "step"])["ms"].agg(["median", "min", "max", "size"]).reset_index()
    return found.set_axis(columns, axis=1)
