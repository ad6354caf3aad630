"""The timing study's tables: a row a cell, and every sample."""

from pathlib import Path

from stepscope.axes import STEP_PHASES
from stepscope.model import flops
from stepscope.tables import peaks
from stepscope.tables.cells import CellResult
from stepscope.tables.columns import NOISE_MARK, REASON, RUN, STATUS, median_of, ratio, run_columns, with_intervals
from stepscope.tables.schema import Group, Table, number
from stepscope.tables.training import (
    KEY,
    PEAK_TFLOPS,
    PEAKS,
    PLACE,
    RATES,
    SAMPLES,
    first_measured,
    keys_of,
    peak_columns,
    phase_columns,
    phase_fields,
    place_columns,
    series_of,
    shape_of,
    step_flop,
    summary_of,
    tokens_of,
    worst_status,
)
from stepscope.tables.writer import write_study

# Column prefix → the series that it shows, the first of them that the cell has: (mode, kind, phase). Forward, backward
# and optimizer come from the phased steps of the heaviest mode that ran, the others from free steps of their own mode.
PHASES = {
    "inference": [("inference", "free", "inference")],
    "free_forward": [("forward", "free", "forward")],
    "forward": [
        ("step", "phased", "forward"),
        ("forward-backward", "phased", "forward"),
        ("forward", "free", "forward"),
    ],
    "backward": [("step", "phased", "backward"), ("forward-backward", "phased", "backward")],
    "optimizer": [("step", "phased", "optimizer")],
    "forward_backward": [("forward-backward", "free", "forward+backward")],
    "step": [("step", "free", "step")],
}
# Column prefix → mode, and the series that is its time.
MODES = {
    "inference": ("inference", ("inference", "free", "inference")),
    "forward": ("forward", ("forward", "free", "forward")),
    "forward_backward": ("forward-backward", ("forward-backward", "free", "forward+backward")),
    "step": ("step", ("step", "free", "step")),
}
FORWARD_ONLY = ("inference", "forward")
TABLES = (
    Table(
        "timing",
        "a cell",
        (
            *(PLACE, NOISE_MARK, STATUS, REASON),
            phase_fields(PHASES),
            number("forward_backward_over_forward", "ratio", "median of free forward and backward over free forward"),
            number("backward_over_forward", "ratio", "median of backward over that of forward"),
            number("phases_minus_step_ms", "ms", "medians of forward, backward and optimizer less that of the step"),
            PEAK_TFLOPS,
            Group(
                "mode",
                (*RATES, number("first_step_ms", "ms", "the mode's very first step, warm-up included"), *PEAKS),
                {f"{prefix}_": f"free steps of mode `{mode}`" for prefix, (mode, _) in MODES.items()},
            ),
            RUN,
        ),
    ),
    Table("timing_samples", "a phase of a step", (KEY, SAMPLES)),
)


def write(cells: list[CellResult], folder: Path) -> None:
    """Write timing.csv and timing_samples.csv."""
    rows = rows_of(cells)
    write_study(folder, TABLES, rows, cells, keys_of(rows))


def rows_of(cells: list[CellResult]) -> list[dict]:
    """Each cell as one row, in the plan's order."""
    rows = [row(cell) for cell in cells]
    with_intervals(rows, [f"{name}_" for name in PHASES], point=but_for_the_time)
    return rows


def but_for_the_time(row: dict) -> tuple:
    """What cells have in common that were measured twice."""
    return tuple(row[name] for name in PLACE.names if name not in ("cell", "repeat"))


def row(cell: CellResult) -> dict:
    """One cell as one row: its place in the grid, status, statistics (ms), rates, memory (bytes), provenance."""
    summary, run = summary_of(cell), run_columns(cell)
    return {
        **place_columns(cell),
        "noise_mark": cell.noisy,
        **worst_status(cell),
        **phase_columns(summary, PHASES),
        **_ratios(summary),
        **_rates_and_memory(cell, peaks.tflops(run.get("device_name"), cell.entry["spec"]["precision"])),
        **run,
    }


def _ratios(summary: dict) -> dict:
    """What the phases' medians are to each other."""
    series = series_of(summary)
    medians = {name: median_of(first_measured(series, candidates)) for name, candidates in PHASES.items()}
    phases, step = [medians[name] for name in STEP_PHASES], medians["step"]
    return {
        "forward_backward_over_forward": ratio(medians["forward_backward"], medians["free_forward"]),
        "backward_over_forward": ratio(medians["backward"], medians["forward"]),
        "phases_minus_step_ms": None if None in (*phases, step) else 1000 * (sum(phases) - step),
    }


def _rates_and_memory(cell: CellResult, peak: float | None) -> dict:
    """Rates, MFU (the rate over `peak`, the GPU's in TFLOP/s; PaLM, Chowdhery et al. 2022, appendix B), and memory."""
    summary, tokens = summary_of(cell), tokens_of(cell)
    series = series_of(summary)
    columns = {"peak_tflops": peak}
    for prefix, (mode, key) in MODES.items():
        seconds, done = median_of(series.get(key, {})), _operations(cell, prefix)
        columns[f"{prefix}_tokens_per_s"] = ratio(tokens, seconds)
        columns[f"{prefix}_tflops"] = None if None in (seconds, done) else done / seconds / 1e12
        columns[f"{prefix}_mfu"] = ratio(columns[f"{prefix}_tflops"], peak)
        found = summary["modes"].get(mode, {})
        first = found.get("first_step")
        columns[f"{prefix}_first_step_ms"] = None if first is None else 1000 * first
        columns |= peak_columns(found, f"{prefix}_")
    return columns


def _operations(cell: CellResult, prefix: str) -> int | None:
    """The model's operations in a mode of MODES; None where they are not known.

    Of a model of one's own both passes are known together, and no share of them is taken for the forward pass.
    """
    spec, shape = cell.entry["spec"], shape_of(cell)
    if prefix not in FORWARD_ONLY:
        return step_flop(cell)
    return flops.forward_flops(shape, spec["batch"], spec["context"]) if shape else None
