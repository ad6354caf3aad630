"""The warm-up study's tables: a row a cell, with its means beside the steady state, and every sample.

A cell is one process. The steady state of a point is that of all its processes that ran late steps.
"""

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
    NO_CONTROL,
    NOISE_MARK,
    REASON,
    RUN,
    STATISTICS,
    STATUS,
    BetweenCells,
    mark_slow_hosts,
    milliseconds,
    ratio,
    run_columns,
    statistics_columns,
    with_intervals,
)
from stepscope.tables.schema import Group, Table, count, flag, number, text
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
    tokens_of,
)
from stepscope.tables.writer import write_study

MODE = "step"
# The step from which on samples are steady: the first of these from which two processes have FEWEST steps, else one.
STEADY_FROM = (10, 5)
FEWEST = 3  # late steps without which a process is no part of the steady state
# Parts of a profiled step -> the start of their columns, in the order in which they are shown.
PARTS = {
    "module loading": "module_loading",
    "memory allocation": "memory_allocation",
    "matrix products": "matrix_products",
    "compiled code": "compiled_code",
    "other API calls": "other_api_calls",
    "waiting for the device": "waiting_for_the_device",
    "the profiler itself": "the_profiler_itself",
    "operators": "operators",
    "Python and the rest": "python_and_the_rest",
}
# A part of older records → the part that it is now; it held compiled code too, of which plain PyTorch has none.
FORMER_PARTS = {"compilation and autotuning": "matrix products"}
SET_UP = tuple(PARTS)[:5]  # what takes longer in the first step, since something is made ready
REST = tuple(PARTS)[-1]  # the profiled time less all other parts
# Column of the shared statistics → the same of the point's steady state, whose samples are those of its processes.
STEADY = {
    "median_ms": number("steady_ms", "ms", "the steady state: geometric mean of its processes' medians"),
    "ci_low_ms": number("steady_ci_low_ms", "ms", "lower end of its 95 % confidence interval, between processes"),
    "ci_high_ms": number("steady_ci_high_ms", "ms", "upper end; both are empty where no point has two processes"),
    "limited_by": text("steady_limited_by", "what limits it: `launches`, `gpu` or `processor`"),
    "spread": number(
        "steady_spread",
        "share",
        "standard deviation of a process's logarithm, pooled over the machine's points that the same limits",
    ),
    "spread_degrees": count("steady_spread_degrees", "degrees of freedom of `steady_spread`"),
    "unsteady": flag(
        "steady_unsteady",
        "the point's processes differ by more than chance allows among these: `steady_spread` is its own where wider",
        is_optional=True,
    ),
}
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
            count("steady_processes", "the processes that the steady state is made of: with 3 such steps or more"),
            count("steady_samples", "these steps, of all these processes"),
            Group(
                "phase",
                (
                    *STATISTICS.members,
                    number("first_ms", "ms", "the first measured step"),
                    *STEADY.values(),
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

Series = dict[str, dict[int, tuple[float, float | None]]]  # prefix -> step -> seconds, seconds until it was launched


@dataclass(frozen=True)
class Steady:
    """A point's steady state: from which step on, of how many steps of how many processes, and its columns of STEADY
    by column prefix."""

    first_step: int
    processes: int
    samples: int
    columns: dict[str, dict]


def write(cells: list[CellResult], folder: Path, control: BetweenCells = NO_CONTROL) -> None:
    """Write warmup.csv and warmup_samples.csv."""
    rows = rows_of(cells, control)
    write_study(folder, TABLES, rows, cells, keys_of(rows))


def rows_of(cells: list[CellResult], control: BetweenCells = NO_CONTROL) -> list[dict]:
    """Each cell as one row; those of one point share its steady state."""
    series = [series_of(cell) for cell in cells]
    points: dict[str, list[tuple[CellResult, Series]]] = defaultdict(list)
    for cell, found in zip(cells, series, strict=True):
        if status_of(cell, _mode(cell))["status"] == "ok" and not is_profiled(cell):
            points[_point(cell)].append((cell, found))
    states = steady_states(points, control)
    rows = [row(cell, own, states.get(_point(cell))) for cell, own in zip(cells, series, strict=True)]
    mark_slow_hosts(rows)
    return rows


def is_profiled(cell: CellResult) -> bool:
    """Did the cell run its first step under the profiler?"""
    return "first" in cell.entry["spec"]


def series_of(cell: CellResult) -> Series:
    """The cell's samples by column prefix and step, in seconds; sums of phases where a step has all of them."""
    found: dict[str, dict[int, tuple[float, float | None]]] = defaultdict(dict)
    for line in csv.DictReader(cell.samples):
        launched = line.get("launch_seconds")
        found[line["phase"]][int(line["step"])] = float(line["seconds"]), float(launched) if launched else None
    every: Series = {}
    for prefix, phases in PHASES.items():
        steps = set.intersection(*(set(found[phase]) for phase in phases))
        every[prefix] = {step: _sum([found[phase][step] for phase in phases]) for step in sorted(steps)}
    return every


def _sum(times: list[tuple[float, float | None]]) -> tuple[float, float | None]:
    """Of the phases of a step; nothing is known of its launches where a phase's are not."""
    launches = [launched for _, launched in times]
    return sum(seconds for seconds, _ in times), None if None in launches else sum(launches)


def steady_states(
    points: dict[str, list[tuple[CellResult, Series]]], control: BetweenCells = NO_CONTROL
) -> dict[str, Steady]:
    """Point → its steady state; none of a point without a process that ran enough late steps.

    points: the cells of each point that count, with their series. The spread between processes is that of all points
    of a machine, for each phase; control as in with_intervals().
    """
    starts = {name: start for name, own in points.items() if (start := _first_steady(own)) is not None}
    rows = {name: _late(points[name], start) for name, start in starts.items()}
    for prefix in PHASES:  # one by one: phases of a process, and their sums, do not vary independently
        with_intervals(list(rows.values()), [f"{prefix}_"], control=control)
    return {
        name: Steady(
            starts[name],
            own["step_processes"],
            own["step_samples"],
            {prefix: {to.name: own[f"{prefix}_{name}"] for name, to in STEADY.items()} for prefix in PHASES},
        )
        for name, own in rows.items()
    }


def _first_steady(own: list[tuple[CellResult, Series]]) -> int | None:
    """The step from which on a point's samples are steady."""
    starts = (*STEADY_FROM, max(1, *(cell.entry["spec"]["warmup"] for cell, _ in own)))
    for processes in (2, 1):
        for start in starts:
            if sum(sum(step >= start for step in series["step"]) >= FEWEST for _, series in own) >= processes:
                return start
    return None


def _late(own: list[tuple[CellResult, Series]], start: int) -> dict:
    """Statistics of a point's late steps, a process a cell."""
    first = own[0][0]
    columns = {"hardware": first.hardware, "device": first.entry["spec"]["device"], "noise_mark": None}
    for prefix in PHASES:
        late = [[times for step, times in series[prefix].items() if step >= start] for _, series in own]
        parts = [_process(times) for times in late if len(times) >= FEWEST]
        columns |= statistics_columns(f"{prefix}_", {"processes": parts})
    return columns


def _process(times: list[tuple[float, float | None]]) -> dict:
    """Statistics of one process's steps, with the median of the time until they were launched, where it is known."""
    launches = [launched for _, launched in times if launched is not None]
    return summarise([seconds for seconds, _ in times]) | {"launch": statistics.median(launches) if launches else None}


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
        "steady_processes": steady.processes if steady else None,
        "steady_samples": steady.samples if steady else None,
        **_times(cell, series if status["status"] == "ok" else {}, steady),
        **peak_columns(mode),
        **_first_step(summary_of(cell).get("first") or {}),
        **run_columns(cell),
    }


def _times(cell: CellResult, series: Series, steady: Steady | None) -> dict:
    """Each phase over the measured steps: statistics, the first of them, the steady state and ratios to it."""
    spec, tokens, columns = cell.entry["spec"], tokens_of(cell), {}
    for prefix in PHASES:
        own = {step: times for step, times in series.get(prefix, {}).items() if step >= spec["warmup"]}
        found = _process(list(own.values())) if own else {}
        columns |= statistics_columns(f"{prefix}_", found)
        first = own[spec["warmup"]][0] if spec["warmup"] in own and not is_profiled(cell) else None
        state = steady.columns[prefix] if steady else dict.fromkeys(each.name for each in STEADY.values())
        columns |= {f"{prefix}_{name}": value for name, value in state.items()}
        mean, median = (columns[f"{prefix}_{name}_ms"] for name in ("mean", "median"))
        columns[f"{prefix}_first_ms"] = milliseconds(first)
        columns[f"{prefix}_mean_over_steady"] = ratio(mean, state["steady_ms"])
        columns[f"{prefix}_median_over_steady"] = ratio(median, state["steady_ms"])
        columns[f"{prefix}_std_over_mean"] = ratio(columns[f"{prefix}_std_ms"], mean)
        columns[f"{prefix}_tokens_per_s"] = ratio(tokens and 1000 * tokens, mean)
    return columns


def _first_step(first: dict) -> dict:
    """Both profiled steps: time (ms) as a whole and by part, calls, page faults; the largest differences as JSON.

    A part that the record does not know stays empty.
    """
    whole, faults = first.get("profiled", {}), first.get("page_faults", {})
    parts = {_part(part["part"]): part for part in first.get("parts", [])}
    columns = {f"profiled_{which}_ms": milliseconds(whole.get(f"{which}_seconds")) for which in ("first", "steady")}
    for name, prefix in PARTS.items():
        part = parts.get(name, {})
        for which in ("first", "steady"):
            columns[f"{prefix}_{which}_ms"] = milliseconds(part.get(f"{which}_seconds"))
            columns[f"{prefix}_{which}_calls"] = part.get(f"calls_{which}")
    columns |= {f"page_faults_{which}": faults.get(which) for which in ("first", "steady")}
    largest = [event | {"part": _part(event["part"])} for event in first.get("largest") or []]
    return columns | {"largest": json.dumps(largest, sort_keys=True) if largest else None}


def _part(name: str) -> str:
    """A part by the name that it has now."""
    return FORMER_PARTS.get(name, name)


def _mode(cell: CellResult) -> dict:
    """What the record says of the cell's one mode."""
    return summary_of(cell)["modes"].get(MODE, {})


def _point(cell: CellResult) -> str:
    """The cell's folder without the last part, which says how much warm-up it had."""
    return cell.name.rpartition("/")[0]
