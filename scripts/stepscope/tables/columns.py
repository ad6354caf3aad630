"""Columns that the tables of all studies share, and how they are filled from a cell."""

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
        count("samples", "how many samples the statistics are made of"),
        count("outliers", "samples more than 1.5 interquartile ranges outside the quartiles; they are kept"),
        number("mean_ms", "ms", "mean"),
        number("std_ms", "ms", "sample standard deviation"),
        number("median_ms", "ms", "median"),
        number("iqr_ms", "ms", "interquartile range"),
        number("ci_low_ms", "ms", "lower end of the 95 % confidence interval of the median"),
        number("ci_high_ms", "ms", "upper end of the 95 % confidence interval of the median"),
        flag("noisy", "half the confidence interval is a larger share of the median than the noise mark"),
    ),
)

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
        text("code", "digest of the code that measured"),
        text("accepted", "edits of it accepted since: `DIGEST on DATE: REASON`, joined by `; `", is_optional=True),
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
    return machine_columns(cell.record) | {"command": cell.entry["command"], "log": log}


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
        "code": record["code"],
        "accepted": "; ".join(f"{one['code']} on {one['date']}: {one['reason']}" for one in record.get("accepted", [])),
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


def statistics_columns(prefix: str, found: dict, noisy_share: float | None) -> dict:
    """STATISTICS of a series, whose summary is in seconds; empty where it has none."""
    columns = {f"{prefix}samples": found.get("count"), f"{prefix}outliers": found.get("outliers")}
    for key in ("mean", "std", "median", "iqr", "ci_low", "ci_high"):
        columns[f"{prefix}{key}_ms"] = milliseconds(found.get(key))
    if "median" in found:
        half = (found["ci_high"] - found["ci_low"]) / 2
        columns[f"{prefix}noisy"] = noisy_share is not None and half > noisy_share * found["median"]
    else:
        columns[f"{prefix}noisy"] = None
    return columns


def milliseconds(seconds: float | None) -> float | None:
    """Seconds as milliseconds; None of None."""
    return None if seconds is None else 1000 * seconds


def ratio(over: float | None, under: float | None) -> float | None:
    """One value over another; None where either is not known, or the second is 0."""
    return None if over is None or not under else over / under
