"""The warm-up study's tables: a row a cell, with its means beside the steady state, and every sample."""

import csv
import json
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from stepscope.axes import STEP_PHASES
from stepscope.measure.summary import summarise
from stepscope.tables.cells import CellResult
from stepscope.tables.columns import (
    NOISE_MARK,
    REASON,
    RUN,
    STATISTICS,
    STATUS,
    milliseconds,
    ratio,
    run_columns,
    statistics_columns,
)
from stepscope.tables.schema import Group, Table, count, number, text
from stepscope.tables.training import (
    KEY,
    PEAKS,
    PLACE,
    SAMPLES,
    STEPS,
    keys_of,
    peak_columns,
    place_columns,
    status_of,
    summary_of,
)
from stepscope.tables.writer import write_study

MODE = "step"
STEADY_FROM = (10, 5)  # the step from which on samples are steady: the first of these that leaves FEWEST of them
FEWEST = 3
# Parts of a profiled step -> the start of their columns, in the order in which they are shown.
PARTS = {
    "module loading": "module_loading",
    "memory allocation": "memory_allocation",
    "compilation and autotuning": "compilation_and_autotuning",
    "other API calls": "other_api_calls",
    "waiting for the device": "waiting_for_the_device",
    "the profiler itself": "the_profiler_itself",
    "operators": "operators",
    "Python and the rest": "python_and_the_rest",
}
SET_UP = tuple(PARTS)[:4]  # what only has to be done once
REST = tuple(PARTS)[-1]  # the profiled time less all other parts
# Column prefix -> the phases that are added up.
PHASES = {
    "forward": ("forward",),
    "backward": ("backward",),
    "optimizer": ("optimizer",),
    "forward_backward": ("forward", "backward"),
    "step": STEP_PHASES,
}
TABLES = (
    Table(
        "warmup",
        "a cell",
        (
            *(PLACE, STEPS),
            text("first", "`profiled` where the first step ran under a profiler, else empty"),
            *(NOISE_MARK, STATUS, REASON),
            number("steady_from", "", "number of the step from which on the point's times count as steady"),
            number("steady_warmup", "count", "warm-up steps of the cell that the steady state is from"),
            number("steady_samples", "count", "steps of the steady state"),
            Group(
                "phase",
                (
                    *STATISTICS.members,
                    number("first_ms", "ms", "the first measured step"),
                    number("steady_ms", "ms", "median of the point's steady state"),
                    number("mean_over_steady", "ratio", "mean over the steady state"),
                    number("median_over_steady", "ratio", "median over the steady state"),
                    number("std_over_mean", "ratio", "standard deviation over mean"),
                    number("tokens_per_s", "tokens/s", "tokens of a batch over the mean"),
                ),
                {f"{name}_": f"{' + '.join(phases)} of measured steps" for name, phases in PHASES.items()},
            ),
            *PEAKS,
            number("profiled_first_ms", "ms", "the first step, under a profiler"),
            number("profiled_steady_ms", "ms", "a later step, under a profiler"),
            Group(
                "part",
                (
                    number("first_ms", "ms", "host time of the first step, under a profiler"),
                    count("first_calls", "events in it"),
                    number("steady_ms", "ms", "host time of a later step, under a profiler"),
                    count("steady_calls", "events in it"),
                ),
                {f"{start}_": name for name, start in PARTS.items()},
            ),
            count("page_faults_first", "minor page faults of the first step"),
            count("page_faults_steady", "minor page faults of the later step"),
            text("largest", "the host events with the largest differences between both steps, as JSON"),
            RUN,
        ),
    ),
    Table("warmup_samples", "a phase of a step", (KEY, SAMPLES)),
)

Series = dict[str, dict[int, float]]  # column prefix -> step -> seconds


@dataclass(frozen=True)
class Steady:
    """Medians (seconds) of a point's steady steps by column prefix: from which step of which cell, and how many."""

    medians: dict[str, float]
    first_step: int
    warmup: int
    samples: int


def write(cells: list[CellResult], folder: Path) -> None:
    """Write warmup.csv and warmup_samples.csv."""
    rows = rows_of(cells)
    write_study(folder, TABLES, rows, cells, keys_of(rows))


def rows_of(cells: list[CellResult]) -> list[dict]:
    """Each cell as one row; those of one point share the steady state of the one with the most warm-up."""
    series = [series_of(cell) for cell in cells]
    points: dict[str, list[tuple[int, Series]]] = defaultdict(list)
    for cell, found in zip(cells, series, strict=True):
        if status_of(cell, _mode(cell))["status"] == "ok" and not is_profiled(cell):
            points[_point(cell)].append((cell.entry["spec"]["warmup"], found))
    states = {point: steady_state(found) for point, found in points.items()}
    return [row(cell, own, states.get(_point(cell))) for cell, own in zip(cells, series, strict=True)]


def is_profiled(cell: CellResult) -> bool:
    """Did the cell run its first step under the profiler?"""
    return "first" in cell.entry["spec"]


def series_of(cell: CellResult) -> Series:
    """The cell's samples by column prefix and step, in seconds; sums of phases where a step has all of them."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for line in csv.DictReader(cell.samples):
        found[line["phase"]][int(line["step"])] = float(line["seconds"])
    every: Series = {}
    for prefix, phases in PHASES.items():
        steps = set.intersection(*(set(found[phase]) for phase in phases))
        every[prefix] = {step: sum(found[phase][step] for phase in phases) for step in sorted(steps)}
    return every


def steady_state(found: list[tuple[int, Series]]) -> Steady | None:
    """The steady state by the cell with the most warm-up, of (warm-up steps, series); None if it ran too few steps."""
    warmup, series = max(found, key=lambda each: each[0])
    steps = list(series["step"])
    for start in (*STEADY_FROM, max(warmup, 1)):
        late = [step for step in steps if step >= start]
        if len(late) >= FEWEST:
            medians = {prefix: statistics.median(own[step] for step in late) for prefix, own in series.items()}
            return Steady(medians, start, warmup, len(late))
    return None


def row(cell: CellResult, series: Series, steady: Steady | None) -> dict:
    """One cell: its place in the grid, statistics of its measured steps (ms) and what the first step contains."""
    spec, mode = cell.entry["spec"], _mode(cell)
    status = status_of(cell, mode)
    return {
        **place_columns(cell),
        "steps": spec["steps"],
        "first": spec.get("first", ""),
        "noise_mark": cell.noisy,
        **status,
        "steady_from": steady.first_step if steady else None,
        "steady_warmup": steady.warmup if steady else None,
        "steady_samples": steady.samples if steady else None,
        **_times(cell, series if status["status"] == "ok" else {}, steady),
        **peak_columns(mode),
        **_first_step(summary_of(cell).get("first") or {}),
        **run_columns(cell),
    }


def _times(cell: CellResult, series: Series, steady: Steady | None) -> dict:
    """Each phase over the measured steps: statistics, the first of them, the steady state and ratios to it."""
    spec, columns = cell.entry["spec"], {}
    for prefix in PHASES:
        own = {step: seconds for step, seconds in series.get(prefix, {}).items() if step >= spec["warmup"]}
        found = summarise(list(own.values())) if own else {}
        columns |= statistics_columns(f"{prefix}_", found)
        first = None if is_profiled(cell) else own.get(spec["warmup"])
        state = steady.medians[prefix] if steady else None
        columns[f"{prefix}_first_ms"] = milliseconds(first)
        columns[f"{prefix}_steady_ms"] = milliseconds(state)
        columns[f"{prefix}_mean_over_steady"] = ratio(found.get("mean"), state)
        columns[f"{prefix}_median_over_steady"] = ratio(found.get("median"), state)
        columns[f"{prefix}_std_over_mean"] = ratio(found.get("std"), found.get("mean"))
        columns[f"{prefix}_tokens_per_s"] = ratio(spec["batch"] * spec["context"], found.get("mean"))
    return columns


def _first_step(first: dict) -> dict:
    """Both profiled steps: time (ms) as a whole and by part, calls, page faults; the largest differences as JSON."""
    whole, faults = first.get("profiled", {}), first.get("page_faults", {})
    parts = {part["part"]: part for part in first.get("parts", [])}
    columns = {f"profiled_{which}_ms": milliseconds(whole.get(f"{which}_seconds")) for which in ("first", "steady")}
    for name, prefix in PARTS.items():
        part = parts.get(name, {})
        for which in ("first", "steady"):
            columns[f"{prefix}_{which}_ms"] = milliseconds(part.get(f"{which}_seconds"))
            columns[f"{prefix}_{which}_calls"] = part.get(f"calls_{which}")
    columns |= {f"page_faults_{which}": faults.get(which) for which in ("first", "steady")}
    largest = first.get("largest")
    return columns | {"largest": json.dumps(largest, sort_keys=True) if largest else None}


def _mode(cell: CellResult) -> dict:
    """What the record says of the cell's one mode."""
    return summary_of(cell)["modes"].get(MODE, {})


def _point(cell: CellResult) -> str:
    """The cell's folder without the last part, which says how much warm-up it had."""
    return cell.name.rpartition("/")[0]
