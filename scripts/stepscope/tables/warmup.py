"""The warm-up study's tables: a row a cell, with its means beside the steady state, and every sample."""

import csv
import json
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from stepscope.measure.summary import summarise
from stepscope.tables.cells import CellResult
from stepscope.tables.training import KEY, SAMPLES, place_columns
from stepscope.tables.warmup_names import PARTS, PHASES
from stepscope.tables.writing import machine_columns, statistics_columns, write_tables

MODE = "step"
STEADY_FROM = (10, 5)  # the step from which on samples are steady: the first of these that leaves FEWEST of them
FEWEST = 3
PEAKS = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_resident_bytes")

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
    samples = (([line[name] for name in KEY], cell.samples[1:]) for line, cell in zip(rows, cells, strict=True))
    write_tables(folder, "warmup", rows, KEY + SAMPLES, samples)


def rows_of(cells: list[CellResult]) -> list[dict]:
    """Each cell as one row; those of one point share the steady state of the one with the most warm-up."""
    series = [series_of(cell) for cell in cells]
    points: dict[str, list[tuple[int, Series]]] = defaultdict(list)
    for cell, found in zip(cells, series, strict=True):
        if _status(cell)[0] == "ok" and not is_profiled(cell):
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
    spec, summary = cell.entry["spec"], cell.record.get("summary", {})
    status, reason = _status(cell)
    mode = summary.get("modes", {}).get(MODE, {})
    return {
        **place_columns(cell),
        "steps": spec["steps"],
        "first": spec.get("first", ""),
        "noise_mark": cell.noisy,
        "status": status,
        "reason": reason,
        "steady_from": steady.first_step if steady else None,
        "steady_warmup": steady.warmup if steady else None,
        "steady_samples": steady.samples if steady else None,
        **_times(cell, series if status == "ok" else {}, steady),
        **{name: mode.get(name) for name in PEAKS},
        **_first_step(summary.get("first") or {}),
        **machine_columns(cell.record),
        "command": cell.entry["command"],
        "log": None if cell.status == "missing" else f"results/{cell.name}/measure.log",
    }


def _times(cell: CellResult, series: Series, steady: Steady | None) -> dict:
    """Each phase over the measured steps: statistics, the first of them, the steady state and ratios to it."""
    spec, columns = cell.entry["spec"], {}
    for prefix in PHASES:
        own = {step: seconds for step, seconds in series.get(prefix, {}).items() if step >= spec["warmup"]}
        found = summarise(list(own.values())) if own else {}
        columns |= statistics_columns(f"{prefix}_", found, cell.noisy)
        first = None if is_profiled(cell) else own.get(spec["warmup"])
        state = steady.medians[prefix] if steady else None
        columns[f"{prefix}_first_ms"] = _ms(first)
        columns[f"{prefix}_steady_ms"] = _ms(state)
        columns[f"{prefix}_mean_over_steady"] = _ratio(found.get("mean"), state)
        columns[f"{prefix}_median_over_steady"] = _ratio(found.get("median"), state)
        columns[f"{prefix}_std_over_mean"] = _ratio(found.get("std"), found.get("mean"))
        columns[f"{prefix}_tokens_per_s"] = _ratio(spec["batch"] * spec["context"], found.get("mean"))
    return columns


def _first_step(first: dict) -> dict:
    """Both profiled steps: time (ms) as a whole and by part, calls, page faults; the largest differences as JSON."""
    whole, faults = first.get("profiled", {}), first.get("page_faults", {})
    parts = {part["part"]: part for part in first.get("parts", [])}
    columns = {f"profiled_{which}_ms": _ms(whole.get(f"{which}_seconds")) for which in ("first", "steady")}
    for name, prefix in PARTS.items():
        part = parts.get(name, {})
        for which in ("first", "steady"):
            columns[f"{prefix}_{which}_ms"] = _ms(part.get(f"{which}_seconds"))
            columns[f"{prefix}_{which}_calls"] = part.get(f"calls_{which}")
    columns |= {f"page_faults_{which}": faults.get(which) for which in ("first", "steady")}
    largest = first.get("largest")
    return columns | {"largest": json.dumps(largest, sort_keys=True) if largest else None}


def _status(cell: CellResult) -> tuple[str, str]:
    """The cell's status and its reason."""
    mode = cell.record.get("summary", {}).get("modes", {}).get(MODE, {})
    return mode.get("status", cell.status), mode.get("reason") or cell.reason


def _point(cell: CellResult) -> str:
    """The cell's folder without the last part, which says how much warm-up it had."""
    return cell.name.rpartition("/")[0]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _ratio(over: float | None, under: float | None) -> float | None:
    return None if over is None or not under else over / under
