"""The warm-up study's cells as the report needs them: the runs of one size, and settings of several sizes."""

import json
import statistics
from dataclasses import dataclass

import pandas as pd

from stepscope import axes
from stepscope.report.kit import formatting
from stepscope.report.kit.order import label, machine_labels, ordered, precision_rank, with_order
from stepscope.tables.columns import ratio
from stepscope.tables.reader import Tables
from stepscope.tables.warmup import PARTS, PHASES, SET_UP

SAMPLES = ["cell", "step", "phase", "warmup", "seconds"]
CLOSE = 0.05  # a mean is as good as the steady state if it differs by no more than this share of it
WARM = 5  # warm-up steps from which on processes of this study are compared as runs of the same thing
RUN_PHASES = ("forward", "backward", "step")  # of which runs of the same cell are compared


@dataclass(frozen=True)
class SizeRuns:
    """A size at a setting: a row for each number of warm-up steps, ascending, and one with the profiled first step."""

    size: str
    parameters: float
    timed: tuple[dict, ...]
    profiled: dict | None

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
        return next((value for row in self.measured if formatting.known(value := row[f"{phase}_steady_ms"])), None)

    @property
    def disagreement(self) -> float | None:
        """(Largest − smallest) / median of the median steps of the processes with WARM or more warm-up steps."""
        medians = [row["step_median_ms"] for row in self.measured if row["warmup"] >= WARM]
        return (max(medians) - min(medians)) / statistics.median(medians) if len(medians) > 1 else None

    @property
    def is_settled(self) -> bool:
        """Whether the warm processes agree on the steady state, so that a mean can be held against it."""
        return self.disagreement is None or self.disagreement <= CLOSE

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
        steady = self.steady(phase)
        return self.cold[f"{phase}_first_ms"] - steady if self.cold and steady is not None else None


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

    @property
    def settled(self) -> list[SizeRuns]:
        """Those of them whose steady state is sure."""
        return [point for point in self.measured if point.is_settled]

    @property
    def unsettled(self) -> list[SizeRuns]:
        """The others."""
        return [point for point in self.measured if not point.is_settled]


class Warmups:
    """All that the report reads of the study."""

    def __init__(self, tables: Tables):
        self.tables = tables
        self.cells = with_order(tables["warmup"])
        self.settings = _settings(self.cells)
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


def _settings(cells: pd.DataFrame) -> list[Setting]:
    if cells.empty:
        return []
    axes = ["hardware", "context", "precision", "batch", "options", "repeat"]
    found = []
    for values, own in cells.groupby(axes, sort=False):
        points = [_point(size, part) for size, part in own.groupby("size", sort=False)]
        found.append(Setting(*values, tuple(points)))
    order = machine_labels(each.hardware for each in found)
    return sorted(found, key=lambda each: (order.index(each.hardware), precision_rank(each.precision), each.context))


def _point(size: str, part: pd.DataFrame) -> SizeRuns:
    rows = part.sort_values("warmup", kind="stable").to_dict("records")
    timed = [row for row in rows if not is_profiled(row)]
    profiled = next((row for row in rows if is_profiled(row)), None)
    return SizeRuns(size, float(part["parameters"].max()), tuple(timed), profiled)


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
    """The excess of loading, allocation, autotuning and other API calls together, ms."""
    parts = [part_excess(row, part) for part in SET_UP]
    return None if None in parts else sum(parts)


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


POINT = ["hardware", "size", "context", "batch", "precision", "mode", "options"]


def spreads(cells: pd.DataFrame) -> pd.DataFrame:
    """A row a point that was measured more than once and a phase: `medians` (ms, by run), `spread` = (max - min) /
    median of the runs' medians, a share of one; `cells`: of these runs."""
    columns = [*POINT, "parameters", "phase", "medians", "spread", "cells"]
    repeated = cells[cells.groupby(POINT, dropna=False)["cell"].transform("size") > 1] if len(cells) else cells
    rows = []
    for _, own in repeated.groupby(POINT, sort=False, dropna=False) if len(repeated) else ():
        for phase in (phase for phase in axes.PHASES if f"{phase}_median_ms" in own):
            medians = own[f"{phase}_median_ms"].dropna()
            if len(medians) > 1:
                spread = (medians.max() - medians.min()) / medians.median()
                found = {"phase": phase, "medians": list(medians), "spread": spread}
                rows.append(own.iloc[0][[*POINT, "parameters"]].to_dict() | found
                            | {"cells": tuple(own.loc[medians.index, "cell"])})  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def runs(warmups: Warmups) -> pd.DataFrame:
    """What `spreads` gives for the timing study's repeats and for this study's warm processes, and `study`."""
    timing, cells = with_order(warmups.tables["timing"]), warmups.cells
    if len(cells):
        cells = cells[(cells["warmup"] >= WARM) & (cells["first"] != "profiled")]
    found = [spreads(each).assign(study=study) for study, each in (("timing", timing), ("warmup", cells))]
    found = [each for each in found if len(each)]
    every = pd.concat(found) if found else pd.DataFrame(columns=["hardware", "phase"])
    return every[every["phase"].isin(RUN_PHASES)].reset_index(drop=True)


@dataclass(frozen=True)
class TimedElsewhere:
    """The timing study's phased steps of a point of this study, over its steady state, and their cells."""

    size: str
    over_steady: float
    cells: tuple[str, ...]


def timed_elsewhere(warmups: Warmups, setting: Setting) -> list[TimedElsewhere]:
    """The points that the timing study timed too."""
    timing = with_order(warmups.tables["timing"])
    phases = [f"{phase}_median_ms" for phase in PHASES["step"]]
    if timing.empty or not all(name in timing for name in ("mode", *phases)):
        return []
    same = timing["mode"] == "step"
    for name in ("hardware", "context", "precision", "batch", "options"):
        same &= timing[name] == getattr(setting, name)
    timing = timing[same].assign(phased=timing[phases].sum(axis=1, skipna=False)).dropna(subset="phased")
    found = []
    for point in setting.measured:
        own = timing[timing["size"] == point.size]
        if len(own) and (value := ratio(statistics.median(own["phased"]), point.steady("step"))):
            found.append(TimedElsewhere(point.size, float(value), tuple(own["cell"])))
    return found
