"""The attention study's tables: a row for each length and direction of a cell, and every sample."""

from pathlib import Path

from stepscope.axes import FULL, mask_of
from stepscope.model import flops
from stepscope.tables.cells import CellResult
from stepscope.tables.columns import (
    CELL,
    HARDWARE,
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
    milliseconds,
    run_columns,
    statistics_columns,
    with_intervals,
)
from stepscope.tables.schema import Group, Table, count, flag, number, text
from stepscope.tables.writer import write_study

LENGTH = count("length", "positions of a sequence, those of Q")
KEY = Group(
    "the key of a cell",
    (
        CELL,
        HARDWARE,
        text("implementation", "implementation of attention"),
        count("d_head", "width of a head"),
        PRECISION,
        count("heads", "heads; 0: no dimension of heads"),
        text("causal", "`yes` or `no`: whether a position only sees those before it"),
        text(
            "mask",
            "`full`, `causal` (query i sees keys 0 to i, from the upper left corner) or `causal-lower-right` (the last "
            "query sees all keys)",
            is_optional=True,
        ),
        count(
            "key_value_heads", "heads of K and V; as many as `heads`, unless several of Q share one", is_optional=True
        ),
        count("keys", "positions of K and V; empty: as many as those of Q, which are `length`", is_optional=True),
        count(
            "window", "keys that a query sees at most, its own position the last; empty: no window", is_optional=True
        ),
    ),
)
TABLES = (
    Table(
        "attention",
        "a length and direction of a cell",
        (
            KEY,
            count("tokens", "positions of a batch, where the batch follows from them"),
            count("batch", "sequences of a batch"),
            LENGTH,
            text("direction", "`forward` or `backward`"),
            SEED,
            WARMUP,
            count("passes", "measured passes that were asked for"),
            *(NOISE_MARK, STATUS, REASON, STATISTICS),
            count("operations", "floating-point operations of a pass"),
            number("tflops", "TFLOP/s", "`operations` over the median"),
            number("launch_ms", "ms", "median time that the host took to launch a pass"),
            number(
                "host_us",
                "us",
                "how long a call keeps the host busy, several being issued without waiting for the GPU, median over "
                "processes: of `forward` one forward pass, of `backward` a forward and a backward pass; at a cell's "
                "shortest length, on a GPU",
                is_optional=True,
            ),
            number(
                "host_over_sdpa",
                "",
                "`host_us` over what PyTorch's own `scaled_dot_product_attention` takes in turns with it, median over "
                "rounds and processes; none with a window or `causal-lower-right`",
                is_optional=True,
            ),
            number("first_pass_ms", "ms", "the first pass with all that is set up in it"),
            number("before_backward_bytes", "bytes", "memory in tensors between forward and backward pass"),
            number("peak_bytes", "bytes", "most memory in tensors"),
            RUN,
        ),
    ),
    Table(
        "attention_samples",
        "a pass",
        (
            KEY,
            PROCESS,
            LENGTH,
            text("phase", "`forward` or `backward`"),
            number("step", "", "number of the pass, from 0"),
            flag("warmup", "before the measured passes"),
            number("seconds", "s", "time of the pass, on a GPU between two CUDA events"),
            number("launch_seconds", "s", "time that the host took to launch the pass"),
            *TELEMETRY,
        ),
    ),
)


def write(cells: list[CellResult], folder: Path, control: BetweenCells = NO_CONTROL) -> None:
    """Write attention.csv and attention_samples.csv."""
    rows = timed_rows(cells, control)
    write_study(folder, TABLES, rows, cells, [list(_place(cell).values()) for cell in cells])


def timed_rows(cells: list[CellResult], control: BetweenCells = NO_CONTROL) -> list[dict]:
    """The rows of all cells, in the plan's order, with their intervals."""
    rows = [line for cell in cells for line in rows_of(cell)]
    with_intervals(rows, [""], is_queued=True, control=control)
    return rows


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
    shape = (batch, spec.get("heads", 1), length, spec["d_head"])
    seen = mask_of(spec), entry["direction"], spec.get("keys"), spec.get("window")
    done = flops.attention_flops(*shape, *seen)
    times, host = statistics_columns("", entry), entry.get("host_seconds")
    median = times["median_ms"]
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
        **times,
        "operations": done,
        "tflops": done / median / 1e9 if median else None,
        "launch_ms": milliseconds(entry.get("launch_seconds")),
        "host_us": 1e6 * host if host else None,
        "host_over_sdpa": entry.get("host_over_sdpa"),
        "first_pass_ms": milliseconds(entry.get("first_seconds")),
        "before_backward_bytes": entry.get("before_backward_bytes"),
        "peak_bytes": entry.get("peak_bytes"),
        **run_columns(cell),
    }


def _place(cell: CellResult) -> dict:
    """The columns of KEY."""
    spec, mask = cell.entry["spec"], mask_of(cell.entry["spec"])
    return {
        "cell": cell.name,
        "hardware": cell.hardware,
        "implementation": spec["implementation"],
        "d_head": spec["d_head"],
        "precision": spec["precision"],
        "heads": spec.get("heads", 0),
        "causal": "no" if mask == FULL else "yes",
        "mask": mask,
        "key_value_heads": spec.get("key_value_heads", spec.get("heads", 0)),
        "keys": spec.get("keys"),
        "window": spec.get("window"),
    }
