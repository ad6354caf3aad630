"""The ceilings study's tables: a row a cell with its rate, and every sample."""

from pathlib import Path

from stepscope.tables.cells import CellResult
from stepscope.tables.columns import (
    CELL,
    HARDWARE,
    LAUNCHED,
    NO_CONTROL,
    NOISE_MARK,
    PRECISION,
    PROCESS,
    REASON,
    RUN,
    SEED,
    STATISTICS,
    STATUS,
    TELEMETRY,
    WARMUP,
    BetweenCells,
    run_columns,
    statistics_columns,
    with_intervals,
)
from stepscope.tables.schema import Group, Table, count, flag, number, text
from stepscope.tables.writer import write_study

KEY = Group("the key of a cell", (CELL, HARDWARE, text("operation", "`matmul` or `copy`"), PRECISION))
TABLES = (
    Table(
        "ceilings",
        "a cell",
        (
            KEY,
            count("n", "rows and columns of the matrices that are multiplied"),
            number("bytes_moved", "bytes", "what a copy reads and writes"),
            *(SEED, WARMUP, NOISE_MARK, STATUS, REASON, STATISTICS),
            number("tflops", "TFLOP/s", "2 n³ operations over the median"),
            number("gb_per_s", "GB/s", "`bytes_moved` over the median"),
            RUN,
        ),
    ),
    Table(
        "ceilings_samples",
        "an operation",
        (
            KEY,
            PROCESS,
            number("step", "", "number of the operation, from 0"),
            text("phase", "the operation"),
            flag("warmup", "before the measured operations"),
            number("seconds", "s", "time by the host's clock"),
            number("event_seconds", "s", "time between two CUDA events"),
            LAUNCHED,
            *TELEMETRY,
        ),
    ),
)


def write(cells: list[CellResult], folder: Path, control: BetweenCells = NO_CONTROL) -> None:
    """Write ceilings.csv and ceilings_samples.csv."""
    rows = timed_rows(cells, control)
    write_study(folder, TABLES, rows, cells, [[line[name] for name in KEY.names] for line in rows])


def timed_rows(cells: list[CellResult], control: BetweenCells = NO_CONTROL) -> list[dict]:
    """A row for each cell, in the plan's order, with its interval."""
    rows = [row(cell) for cell in cells]
    with_intervals(rows, [""], control=control)
    return rows


def row(cell: CellResult) -> dict:
    """One cell as one row; the product of two matrices of order n has 2 n^3 operations, a copy reads and writes."""
    spec, found = cell.entry["spec"], cell.record.get("summary", {})
    times = statistics_columns("", found)
    median = times["median_ms"]
    order, moved = spec.get("order"), 2 * spec["mebibytes"] * 2**20 if "mebibytes" in spec else None
    return {
        "cell": cell.name,
        "hardware": cell.hardware,
        "operation": spec["operation"],
        "precision": spec["precision"],
        "n": order,
        "bytes_moved": moved,
        "seed": spec["seed"],
        "warmup": spec["warmup"],
        "noise_mark": cell.noisy,
        "status": found.get("status", cell.status),
        "reason": found.get("reason", cell.reason),
        **times,
        "tflops": 2 * order**3 / median / 1e9 if median and order else None,
        "gb_per_s": moved / median / 1e6 if median and moved else None,
        **run_columns(cell),
    }
