"""The ceilings study's tables: a row a cell with its rate, and every sample."""

from pathlib import Path

from stepscope.tables.cells import CellResult
from stepscope.tables.writing import machine_columns, statistics_columns, write_tables

KEY = ["cell", "hardware", "operation", "precision"]
SAMPLES = ["step", "phase", "warmup", "seconds", "event_seconds", "sm_clock_mhz", "power_w", "temperature_c"]


def write(cells: list[CellResult], folder: Path) -> None:
    """Write ceilings.csv and ceilings_samples.csv."""
    rows = [row(cell) for cell in cells]
    samples = (([line[name] for name in KEY], cell.samples[1:]) for line, cell in zip(rows, cells, strict=True))
    write_tables(folder, "ceilings", rows, KEY + SAMPLES, samples)


def row(cell: CellResult) -> dict:
    """One cell as one row; the product of two matrices of order n has 2 n^3 operations, a copy reads and writes."""
    spec, found = cell.entry["spec"], cell.record.get("summary", {})
    median = found.get("median")
    order, moved = spec.get("order"), 2 * spec["mebibytes"] * 2**20 if "mebibytes" in spec else None
    return {
        "cell": cell.name,
        "hardware": cell.name.split("/")[0],
        "operation": spec["operation"],
        "precision": spec["precision"],
        "n": order,
        "bytes_moved": moved,
        "seed": spec["seed"],
        "warmup": spec["warmup"],
        "noise_mark": cell.noisy,
        "status": found.get("status", cell.status),
        "reason": found.get("reason", cell.reason),
        **statistics_columns("", found, cell.noisy),
        "tflops": 2 * order**3 / median / 1e12 if median and order else None,
        "gb_per_s": moved / median / 1e9 if median and moved else None,
        **machine_columns(cell.record),
        "command": cell.entry["command"],
        "log": None if cell.status == "missing" else f"results/{cell.name}/measure.log",
    }
