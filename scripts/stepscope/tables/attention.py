"""The attention study's tables: a row for each length and direction of a cell, and every sample."""

from pathlib import Path

from stepscope.model import flops
from stepscope.tables.cells import CellResult
from stepscope.tables.writing import machine_columns, statistics_columns, write_tables

KEY = ["cell", "hardware", "implementation", "d_head", "precision", "heads", "causal"]
SAMPLES = [
    *("length", "phase", "step", "warmup", "seconds", "launch_seconds", "sm_clock_mhz", "power_w", "temperature_c")
]


def write(cells: list[CellResult], folder: Path) -> None:
    """Write attention.csv and attention_samples.csv."""
    rows = [line for cell in cells for line in rows_of(cell)]
    samples = (([_place(cell)[name] for name in KEY], cell.samples[1:]) for cell in cells)
    write_tables(folder, "attention", rows, KEY + SAMPLES, samples)


def rows_of(cell: CellResult) -> list[dict]:
    """A cell's rows: each length and direction with its status, times (ms), rate and memory (bytes).

    One without a result has them too, with the reason.
    """
    series = cell.record.get("summary", {}).get("series")
    if series is None:
        lengths = map(int, cell.entry["spec"]["lengths"].split(","))
        empty = {"status": cell.status, "reason": cell.reason}
        series = [empty | {"length": each, "direction": way} for each in lengths for way in ("forward", "backward")]
    return [_row(cell, entry) for entry in series]


def _row(cell: CellResult, entry: dict) -> dict:
    spec, length = cell.entry["spec"], entry["length"]
    batch = spec["batch"] if "batch" in spec else max(1, spec["tokens"] // length)
    is_causal = spec.get("causal") == "yes"
    done = flops.attention_flops(batch, spec.get("heads", 1), length, spec["d_head"], is_causal, entry["direction"])
    median = entry.get("median")
    return {
        **_place(cell),
        "tokens": spec.get("tokens"),
        "batch": batch,
        "length": length,
        "direction": entry["direction"],
        "seed": spec["seed"],
        "warmup": spec["warmup"],
        "passes": spec["steps"],
        "noise_mark": cell.noisy,
        "status": entry["status"],
        "reason": entry["reason"],
        **statistics_columns("", entry, cell.noisy),
        "operations": done,
        "tflops": done / median / 1e12 if median else None,
        "launch_ms": _ms(entry.get("launch_seconds")),
        "first_pass_ms": _ms(entry.get("first_seconds")),
        "before_backward_bytes": entry.get("before_backward_bytes"),
        "peak_bytes": entry.get("peak_bytes"),
        **machine_columns(cell.record),
        "command": cell.entry["command"],
        "log": None if cell.status == "missing" else f"results/{cell.name}/measure.log",
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _place(cell: CellResult) -> dict:
    spec = cell.entry["spec"]
    return {
        "cell": cell.name,
        "hardware": cell.name.split("/")[0],
        "implementation": spec["implementation"],
        "d_head": spec["d_head"],
        "precision": spec["precision"],
        "heads": spec.get("heads", 0),
        "causal": spec.get("causal", "no"),
    }
