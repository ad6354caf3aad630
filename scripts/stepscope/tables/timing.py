"""The timing study's tables: a row a cell, and every sample."""

from pathlib import Path

from stepscope.model import flops
from stepscope.model.shape import ModelShape
from stepscope.tables import peaks
from stepscope.tables.cells import CellResult
from stepscope.tables.training import KEY, SAMPLES, place_columns, shape_of
from stepscope.tables.writing import machine_columns, statistics_columns, write_tables

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
# Column prefix → mode, the series that is its time, and the model's operations in it.
MODES = {
    "inference": ("inference", ("inference", "free", "inference"), flops.forward_flops),
    "forward": ("forward", ("forward", "free", "forward"), flops.forward_flops),
    "forward_backward": ("forward-backward", ("forward-backward", "free", "forward+backward"), flops.step_flops),
    "step": ("step", ("step", "free", "step"), flops.step_flops),
}
NEEDS = {
    "free_forward": "forward",
    "backward": "forward-backward",
    "optimizer": "step",
    "forward_backward": "forward-backward",
}
WORST = ("ok", "unsupported", "oom")


def write(cells: list[CellResult], folder: Path) -> None:
    """Write timing.csv and timing_samples.csv."""
    rows = [row(cell) for cell in cells]
    samples = (([line[name] for name in KEY], cell.samples[1:]) for line, cell in zip(rows, cells, strict=True))
    write_tables(folder, "timing", rows, KEY + SAMPLES, samples)


def row(cell: CellResult) -> dict:
    """One cell as one row: its place in the grid, status, statistics (ms), rates, memory (bytes), provenance."""
    spec, summary = cell.entry["spec"], cell.record.get("summary", {"modes": {}, "phases": []})
    shape = shape_of(cell)
    statuses = [mode["status"] for mode in summary["modes"].values()]
    machine = machine_columns(cell.record)
    peak = peaks.tflops(machine.get("device_name"), spec["precision"])
    status = max(statuses, key=WORST.index) if statuses else cell.status
    reasons = [mode["reason"] for mode in summary["modes"].values() if mode["reason"]]
    return {
        **place_columns(cell),
        "noise_mark": cell.noisy,
        "status": status,
        "reason": reasons[0] if reasons else cell.reason,
        **_times(summary, cell.noisy),
        **_rates_and_memory(summary, shape, spec, peak),
        **machine,
        "command": cell.entry["command"],
        "log": None if cell.status == "missing" else f"results/{cell.name}/measure.log",
    }


def _times(summary: dict, noisy: float | None) -> dict:
    series = {(entry["mode"], entry["kind"], entry["phase"]): entry for entry in summary["phases"]}
    columns, medians = {}, {}
    for prefix, candidates in PHASES.items():
        measured = [series[key] for key in candidates if series.get(key, {}).get("status") == "ok"]
        found = measured[0] if measured else {}
        mode = NEEDS.get(prefix, prefix)
        status = "ok" if found else summary["modes"].get(mode, {}).get("status")
        columns[f"{prefix}_status"] = status
        columns |= statistics_columns(f"{prefix}_", found, noisy)
        medians[prefix] = found.get("median")
    phases = [medians[name] for name in ("forward", "backward", "optimizer")]
    step = medians["step"]
    columns["forward_backward_over_forward"] = _ratio(medians["forward_backward"], medians["free_forward"])
    columns["backward_over_forward"] = _ratio(medians["backward"], medians["forward"])
    columns["phases_minus_step_ms"] = None if None in (*phases, step) else 1000 * (sum(phases) - step)
    return columns


def _rates_and_memory(summary: dict, shape: ModelShape, spec: dict, peak: float | None) -> dict:
    """Rates, MFU (the rate over `peak`, the GPU's in TFLOP/s; PaLM, Chowdhery et al. 2022, appendix B), and memory."""
    series = {(entry["mode"], entry["kind"], entry["phase"]): entry for entry in summary["phases"]}
    columns = {"peak_tflops": peak}
    for prefix, (mode, key, operations) in MODES.items():
        seconds = series.get(key, {}).get("median")
        done = operations(shape, spec["batch"], spec["context"])
        columns[f"{prefix}_tokens_per_s"] = None if seconds is None else spec["batch"] * spec["context"] / seconds
        columns[f"{prefix}_tflops"] = None if seconds is None else done / seconds / 1e12
        columns[f"{prefix}_mfu"] = _ratio(columns[f"{prefix}_tflops"], peak)
        first = summary["modes"].get(mode, {}).get("first_step")
        columns[f"{prefix}_first_step_ms"] = None if first is None else 1000 * first
        for name in ("peak_allocated_bytes", "peak_reserved_bytes", "peak_resident_bytes"):
            columns[f"{prefix}_{name}"] = summary["modes"].get(mode, {}).get(name)
    return columns


def _ratio(over: float | None, under: float | None) -> float | None:
    return None if over is None or under is None else over / under
