"""Columns that the tables of all studies share, and how they are filled from a cell."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType

from stepscope import confidence
from stepscope.tables.cells import CellResult
from stepscope.tables.schema import Group, count, flag, number, text

CELL = text("cell", "the cell: its folder below `results/`")
HARDWARE = text("hardware", "label of the machine, the first part of `cell`")
PRECISION = text("precision", "precision of matrix products; those of 16 bits by autocast")
SEED = number("seed", "", "seed of weights and inputs")
WARMUP = count("warmup", "steps or passes before the measured ones")
NOISE_MARK = number(
    "noise_mark", "share", "half a confidence interval over the median, above which a series is marked as noisy"
)
STATUS = text(
    "status",
    "`ok`; `oom`: out of memory; `unsupported`: not possible there; `failed`: no usable result; `missing`: never ran",
)
REASON = text("reason", "why the status is not `ok`, in one line")

STATISTICS = Group(
    "statistics",
    (
        count("processes", "fresh processes that measured it", is_optional=True),
        count("samples", "how many samples the statistics are made of, of all processes"),
        count(
            "outliers", "samples more than 1.5 interquartile ranges outside their process's quartiles; they are kept"
        ),
        number("mean_ms", "ms", "mean of the processes' means"),
        number("std_ms", "ms", "standard deviation of the samples within a process, pooled over the processes"),
        number("median_ms", "ms", "geometric mean of the processes' medians"),
        number("iqr_ms", "ms", "mean of the processes' interquartile ranges"),
        number("ci_low_ms", "ms", "lower end of the 95 % confidence interval of `median_ms`, between processes"),
        number("ci_high_ms", "ms", "upper end of that interval; both are empty with a single process"),
        flag("noisy", "half the confidence interval is a larger share of the median than the noise mark, or unsteady"),
        text("process_medians_ms", "the processes' medians in ms, separated by spaces", is_optional=True),
        number(
            "launch_share",
            "share",
            "of the time that passes until the host has launched the work; on a GPU",
            is_optional=True,
        ),
        text(
            "limited_by",
            "`launches`: the host's launches fill the time; `gpu`: they do not; `processor`: on a CPU",
            is_optional=True,
        ),
        number(
            "spread",
            "share",
            "standard deviation of a process's logarithm, pooled over the table's series that the same limits",
            is_optional=True,
        ),
        count("spread_degrees", "degrees of freedom of `spread`", is_optional=True),
        number(
            "spread_cells",
            "share",
            "standard deviation of a cell's logarithm beyond that, by the timing study's control and the clock's steps",
            is_optional=True,
        ),
        count("spread_cells_degrees", "degrees of freedom of that control: cells measured again", is_optional=True),
        flag(
            "unsteady",
            "its processes differ by more than chance allows in its class: `spread` is its own where that is wider",
            is_optional=True,
        ),
    ),
)
LAUNCHES, GPU, PROCESSOR = "launches", "gpu", "processor"
LAUNCH_LIMITED = 0.9  # the launch share from which on the host's launches may fill a series' time
# A host that is ahead waits once CUDA's queue is full (about a thousand kernels), so that its share is high too. But
# then the GPU works on for as long as these kernels take: at least this, since each takes longer than its launch.
QUEUED_MS = 2.0
# A CUDA event's time comes in steps of about half a microsecond (cudaEventElapsedTime of the CUDA runtime): each of the
# two has an error that is uniform over such a step, of 1 / sqrt(12) of it.
EVENT_ERROR_MS = 0.0005 * math.sqrt(2 / 12)
SLOW_HOST = 1.25  # how many times as long as in the quickest cell the loop of plain Python takes in a slow moment

# (hardware, what limits a series) -> standard deviation of a cell's logarithm beyond what its processes explain, and
# its degrees of freedom.
BetweenCells = Mapping[tuple[str, str | None], tuple[float, int]]
NOTHING = (0.0, 0)
NO_CONTROL: BetweenCells = MappingProxyType({})

PROCESS = number("process", "", "number of the cell's process, from 1", is_optional=True)
LAUNCHED = number("launch_seconds", "s", "time until the host had launched the work; on a GPU", is_optional=True)
TELEMETRY = (
    number("sm_clock_mhz", "MHz", "clock of the GPU's multiprocessors, read at most 0.1 s before"),
    number("power_w", "W", "power that the GPU draws, read at most 0.1 s before"),
    number("temperature_c", "°C", "temperature of the GPU, read at most 0.1 s before"),
)

RUN = Group(
    "the run",
    (
        number("sm_clock_min_mhz", "MHz", "lowest clock of the GPU's multiprocessors at any sample"),
        number("sm_clock_median_mhz", "MHz", "median of that clock"),
        number("power_max_w", "W", "highest power that the GPU drew"),
        number("temperature_max_c", "°C", "highest temperature of the GPU"),
        text("throttle", "what slowed the GPU down, joined by `; `"),
        count("other_processes", "other processes on the GPU"),
        number(
            "host_python_ms",
            "ms",
            "a fixed loop of plain Python, median of before and after the steps",
            is_optional=True,
        ),
        number(
            "host_launches_ms",
            "ms",
            "a fixed loop of tiny launches, median of before and after; on a GPU",
            is_optional=True,
        ),
        number(
            "host_drift", "ratio", "the slowest of the cell's loops of plain Python over the quickest", is_optional=True
        ),
        number(
            "host_slowdown",
            "ratio",
            "`host_python_ms` over the quickest of the table's cells on that machine",
            is_optional=True,
        ),
        flag(
            "slow_host",
            "the host was slow: `host_slowdown` is above 1.25",
            is_optional=True,
        ),
        text("code", "digest of the code that measured"),
        text("is_current", "`yes`, or `no` where older code measured than is there", is_optional=True),
        text("git_commit", "commit of the checkout, with `-dirty` if it had changes"),
        text("started", "when the cell started, ISO 8601"),
        number("duration_s", "s", "how long the cell ran"),
        text("device", "`cuda` or `cpu`"),
        text("device_name", "name of the GPU, else of the processor"),
        number("device_memory_bytes", "bytes", "memory of the GPU, else of the host"),
        text("device_uuid", "UUID of the GPU"),
        text("driver", "version of the GPU's driver"),
        number("power_limit_w", "W", "power limit of the GPU"),
        count("threads", "threads that torch may use"),
        number("cpus", "count", "CPUs that the cell may use", is_optional=True),
        text("python", "version of Python"),
        text("torch", "version of torch"),
        text("cuda", "version of CUDA that torch was built with"),
        text("triton", "version of Triton"),
        text("command", "the command that measures the cell again"),
        text("log", "the cell's log, from the working directory"),
    ),
)


def run_columns(cell: CellResult) -> dict:
    """RUN: device, software, telemetry, time, command and log; without a record only the last two."""
    log = None if cell.status == "missing" else f"results/{cell.name}/measure.log"
    return machine_columns(cell.record) | {
        "command": cell.entry["command"],
        "log": log,
        "is_current": ("no", "yes")[cell.record["code"] == cell.entry["code"]] if cell.record else None,
    }


def machine_columns(record: dict) -> dict:
    """What a record says of the machine, the software and the time; nothing without a record."""
    if not record:
        return {}
    provenance, telemetry = record["provenance"], record["telemetry"]
    hardware, versions = provenance["hardware"], provenance["versions"]
    return {
        **{key: telemetry.get(key) for key in ("sm_clock_min_mhz", "sm_clock_median_mhz", "power_max_w")},
        "temperature_max_c": telemetry.get("temperature_max_c"),
        "throttle": "; ".join(telemetry.get("throttle") or []),
        "other_processes": telemetry.get("other_processes"),
        **_host_columns(record.get("host") or {}),
        "code": record["code"],
        "git_commit": provenance.get("git_commit"),
        "started": provenance["started"],
        "duration_s": provenance["duration_s"],
        "device": hardware["device"],
        "device_name": hardware.get("gpu") or hardware["cpu"],
        "device_memory_bytes": hardware.get("gpu_memory_bytes") or hardware["host_memory_bytes"],
        "device_uuid": hardware.get("gpu_uuid"),
        "driver": hardware.get("driver"),
        "power_limit_w": hardware.get("power_limit_w"),
        "threads": provenance["settings"]["threads"],
        "cpus": provenance["settings"].get("cpus"),  # older records do not say
        **{key: versions.get(key) for key in ("python", "torch", "cuda", "triton")},
    }


def _host_columns(host: dict) -> dict:
    """What the fixed loops took, of all processes; an older record has none."""
    python, launches = host.get("python") or [], host.get("launches") or []
    return {
        "host_python_ms": 1000 * statistics.median(python) if python else None,
        "host_launches_ms": 1000 * statistics.median(launches) if launches else None,
        "host_drift": max(python) / min(python) if python else None,
    }


def statistics_columns(prefix: str, found: dict) -> dict:
    """STATISTICS of a series, whose summary is in seconds, as far as the cell tells by itself; empty where it has none.

    with_intervals() fills in what other cells are needed for.
    """
    columns = dict.fromkeys(f"{prefix}{name}" for name in STATISTICS.names)
    parts = processes_of(found)
    if not parts:
        return columns
    launches = [part["launch"] / part["median"] for part in parts if part.get("launch") is not None]
    own = {
        "processes": len(parts),
        "samples": sum(part["count"] for part in parts),
        "outliers": sum(part["outliers"] for part in parts),
        "mean_ms": 1000 * statistics.fmean(part["mean"] for part in parts),
        "std_ms": milliseconds(_pooled_std(parts)),
        "median_ms": 1000 * median_of(found),
        "iqr_ms": 1000 * statistics.fmean(part["iqr"] for part in parts),
        "process_medians_ms": " ".join(repr(1000 * part["median"]) for part in parts),
        "launch_share": statistics.median(launches) if launches else None,
    }
    return columns | {f"{prefix}{name}": value for name, value in own.items()}


def processes_of(found: dict) -> list[dict]:
    """The statistics of each process of a series; a summary of an older version is that of one process."""
    return found.get("processes") or ([found] if "median" in found else [])


def median_of(found: dict) -> float | None:
    """The value of a series, in seconds: the geometric mean of its processes' medians; None where it has none."""
    parts = processes_of(found)
    return confidence.centre([part["median"] for part in parts]) if parts else None


def _pooled_std(parts: list[dict]) -> float | None:
    """Within processes, by degrees of freedom; None where no process has two samples."""
    known = [part for part in parts if part["std"] is not None]
    free = sum(part["count"] - 1 for part in known)
    return math.sqrt(sum(part["std"] ** 2 * (part["count"] - 1) for part in known) / free) if free else None


def with_intervals(
    rows: list[dict],
    prefixes: Iterable[str],
    is_queued: bool = False,
    point: Callable[[dict], Hashable] | None = None,
    control: BetweenCells = NO_CONTROL,
) -> None:
    """Fill in what limits each series, the spread of all series that the same limits on the same machine, and with it
    the intervals and whether they are wider than the row's noise mark.

    prefixes: of the series' columns. is_queued: the GPU never waited for launches. point: the same for rows that differ
    only in the time at which they were measured; without it control says what those differ by. A series whose processes
    differ by more than chance allows in its class lends it nothing, has its own spread (unless that of its class gives
    a wider interval) and is noisy; one of two processes has no interval. What the clock's error explains is not
    unsteady, and lends its class nothing either.
    """
    mark_slow_hosts(rows)
    classes: dict[tuple, list[tuple[dict, str]]] = {}
    for row in rows:
        measured = [prefix for prefix in prefixes if row[f"{prefix}processes"]]
        for prefix in measured:
            row[f"{prefix}limited_by"] = _limited_by(row, prefix, is_queued)
        for prefix in measured:
            if _is_of_limited_parts(row, prefix):
                row[f"{prefix}limited_by"] = LAUNCHES
            classes.setdefault((row["hardware"], row[f"{prefix}limited_by"]), []).append((row, prefix))
    for which, series in classes.items():
        medians = [_medians(*each) for each in series]
        apart = confidence.unsteady(medians)
        alone = {place for place in apart if not (is_queued and _is_of_the_clock(medians[place]))}
        common = _spread_of_class(
            [(each, own) for place, (each, own) in enumerate(zip(series, medians, strict=True)) if place not in apart],
            point,
            control.get(which, NOTHING),
        )
        for place, (row, prefix) in enumerate(series):
            row[f"{prefix}unsteady"] = place in alone
            own = _own_spread(medians[place], common) if place in alone else common
            _fill_in(row, prefix, _with_clock(own, row[f"{prefix}median_ms"]) if is_queued else own)
            if place in alone:
                row[f"{prefix}noisy"] = True


def mark_slow_hosts(rows: list[dict]) -> None:
    """Mark the cells of slow moments of their machine's host."""
    quickest: dict[str, float] = {}
    for row in rows:
        if row.get("host_python_ms"):
            quickest[row["hardware"]] = min(row["host_python_ms"], quickest.get(row["hardware"], math.inf))
    for row in rows:
        if row.get("host_python_ms"):
            row["host_slowdown"] = row["host_python_ms"] / quickest[row["hardware"]]
            row["slow_host"] = row["host_slowdown"] > SLOW_HOST


def _spread_of_class(
    series: list[tuple[tuple[dict, str], list[float]]],
    point: Callable[[dict], Hashable] | None,
    between: tuple[float, int],
) -> confidence.Spread | None:
    spread = confidence.pooled([medians for _, medians in series])
    if spread is None:
        return None
    if point is None:
        return dataclasses.replace(spread, cells=between[0], cells_degrees=between[1])
    twice: dict[Hashable, list[list[float]]] = {}
    for (row, prefix), medians in series:
        twice.setdefault((point(row), prefix), []).append(medians)
    again = {where: len(times) - 1 for (where, _), times in twice.items() if len(times) > 1}
    cells = confidence.between_cells(twice.values(), spread)
    # Phases of one cell do not vary independently: what counts is the cells.
    return dataclasses.replace(spread, cells=cells, cells_degrees=sum(again.values()))


def _own_spread(medians: list[float], common: confidence.Spread) -> confidence.Spread | None:
    """The spread of an unsteady series, with what cells of its class differ by, or that of its class where the interval
    is wider by it; None of two processes, of which an interval would say nothing."""
    if len(medians) < 3:
        return None
    own = confidence.pooled([medians])
    own = dataclasses.replace(own, cells=common.cells, cells_degrees=common.cells_degrees)
    return max(own, common, key=lambda spread: confidence.interval(1.0, len(medians), spread)[1])


def _is_of_the_clock(medians: list[float]) -> bool:
    return confidence.is_of_the_clock(medians, EVENT_ERROR_MS)


def _with_clock(spread: confidence.Spread | None, median_ms: float) -> confidence.Spread | None:
    """The spread of a series that CUDA events time, with the error of their two time stamps."""
    return dataclasses.replace(spread, cells=math.hypot(spread.cells, EVENT_ERROR_MS / median_ms)) if spread else None


def _fill_in(row: dict, prefix: str, spread: confidence.Spread | None) -> None:
    """The spread of a series, its interval, and whether it is noisy."""
    middle, mark = row[f"{prefix}median_ms"], row["noise_mark"]
    if spread:
        own = {"spread": spread.deviation, "spread_degrees": spread.degrees, "spread_cells": spread.cells}
        own["spread_cells_degrees"] = spread.cells_degrees
        row |= {f"{prefix}{name}": value for name, value in own.items()}
    if ends := confidence.interval(middle, row[f"{prefix}processes"], spread):
        row[f"{prefix}ci_low_ms"], row[f"{prefix}ci_high_ms"] = ends
        row[f"{prefix}noisy"] = mark is not None and (ends[1] - ends[0]) / 2 > mark * middle


def _medians(row: dict, prefix: str) -> list[float]:
    return [float(text) for text in row[f"{prefix}process_medians_ms"].split()]


def _is_of_limited_parts(row: dict, prefix: str) -> bool:
    """Whether the host launches for nearly all of a series of which forward and backward, by themselves, are limited by
    launches. The GPU may work on for longer then: on the optimizer's kernels, which are few and long."""
    share = row[f"{prefix}launch_share"]
    parts = [row.get(f"{part}limited_by") for part in ("forward_", "backward_")]
    return prefix in ("forward_backward_", "step_") and parts == [LAUNCHES] * 2 and (share or 0) >= LAUNCH_LIMITED


def _limited_by(row: dict, prefix: str, is_queued: bool) -> str | None:
    """What fills a series' time; None where an older record does not tell."""
    if row["device"] == "cpu":
        return PROCESSOR
    if is_queued:
        return GPU
    if (share := row[f"{prefix}launch_share"]) is None:
        return None
    works_on = (1 - share) * row[f"{prefix}median_ms"]
    return LAUNCHES if share >= LAUNCH_LIMITED and works_on < QUEUED_MS else GPU


def milliseconds(seconds: float | None) -> float | None:
    """Seconds as milliseconds; None of None."""
    return None if seconds is None else 1000 * seconds


def ratio(over: float | None, under: float | None) -> float | None:
    """One value over another; None where either is not known, or the second is 0."""
    return None if over is None or not under else over / under
