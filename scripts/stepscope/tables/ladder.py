"""The ladder study's tables: a row a cell, compared with the rungs before it, and every sample."""

from pathlib import Path

from stepscope.model.footprint import Setup
from stepscope.tables import ladder_chain, ladder_checkpoint, peaks
from stepscope.tables.cells import CellResult
from stepscope.tables.columns import (
    NO_CONTROL,
    NOISE_MARK,
    REASON,
    RUN,
    STATUS,
    BetweenCells,
    run_columns,
    with_intervals,
)
from stepscope.tables.schema import Group, Table, count, flag, number, text
from stepscope.tables.training import (
    KEY,
    PEAK_TFLOPS,
    PEAKS,
    PLACE,
    RATES,
    SAMPLES,
    keys_of,
    peak_columns,
    phase_columns,
    phase_fields,
    place_columns,
    shape_of,
    step_flop,
    summary_of,
    tokens_of,
    worst_status,
)
from stepscope.tables.writer import write_study

# Column prefix → its series in a record: (mode, kind, phase).
PHASES = {
    "forward": [("step", "phased", "forward")],
    "backward": [("step", "phased", "backward")],
    "optimizer": [("step", "phased", "optimizer")],
    "forward_backward": [("forward-backward", "free", "forward+backward")],
    "step": [("step", "free", "step")],
}
TIMES = {"step": "step", "forward_backward": "forward+backward"}  # what gains are of, the first that both cells have
COUNTED = (
    number("compile_seconds", "s", "by how much the first step, which compiles, is longer than a later one"),
    count("kernels", "kernels of one step or pass"),
    count("launches", "launches of the host in it; a CUDA graph is one"),
    count("operators", "operators of PyTorch in it; on a CPU"),
    text("counted", "the mode that was counted"),
    number("loss", "", "loss before the first optimizer step"),
    number("gradient_norm", "", "2-norm of the gradients then"),
)
STANDING = (
    number("rung", "", "place in the chain, from 0; empty for a cell beside it"),
    flag("aside", "the cell stands beside the chain"),
    text("name", "what the cell changes against what it is compared with, else how it runs"),
    text("compared_with", "cell that it is compared with: the rung before, or what an aside varies"),
    text("started_from", "cell that the ladder starts from"),
)
PREDICTED = (
    number("predicted_peak_bytes", "bytes", "peak of a step in closed form"),
    number("boundary_bytes", "bytes", "what is kept of a group of blocks that is checkpointed: its input"),
    number("block_saved_bytes", "bytes", "what a block saves for its backward pass"),
    number("predicted_checkpoint", "count", "blocks of a group with the least memory kept, by the square-root rule"),
    count("predicted_best_checkpoint", "blocks of a group with the least memory kept, near the lowest predicted peak"),
)
GAINS = (
    number("gain_before", "ratio", "time of the cell that it is compared with, over its own"),
    text("gain_of", "what these times are of: `step` or `forward+backward`"),
    number("gain_start", "ratio", "time of the ladder's start, over its own"),
    text("gain_start_of", "what these times are of"),
)
TABLES = (
    Table(
        "ladder",
        "a cell",
        (
            *(PLACE, NOISE_MARK, STATUS, REASON),
            *STANDING,
            phase_fields(PHASES),
            flag("noisy", "the time that gains are of is noisy"),
            PEAK_TFLOPS,
            Group("time", RATES, {f"{prefix}_": f"{words}, free steps" for prefix, words in TIMES.items()}),
            text("peak_mode", "the mode that the peaks are of"),
            number("reached_bytes", "bytes", "most memory in use in any mode, also until it ran out", is_optional=True),
            *(*PEAKS, *PREDICTED, *COUNTED),
            ladder_chain.AGREEMENT,
            *GAINS,
            RUN,
        ),
    ),
    Table("ladder_samples", "a phase of a step", (KEY, SAMPLES)),
)


def write(cells: list[CellResult], folder: Path, control: BetweenCells = NO_CONTROL) -> None:
    """Write ladder.csv and ladder_samples.csv."""
    lines = rows(cells, control)
    write_study(folder, TABLES, lines, cells, keys_of(lines))


def rows(cells: list[CellResult], control: BetweenCells = NO_CONTROL) -> list[dict]:
    """A row for each cell, in the plan's order."""
    own = {row["cell"]: row for row in timed_rows(cells, control)}
    for row in own.values():
        row["noisy"] = next((found for key in TIMES if (found := row[f"{key}_noisy"]) is not None), None)
    ladders: dict[tuple, list[CellResult]] = {}
    for cell in cells:
        ladders.setdefault(ladder_chain.group_of(cell.entry), []).append(cell)
    for ladder in ladders.values():
        _place(ladder, own)
        _check(ladder, own)
        _compare(ladder, own)
    return [own[cell.name] for cell in cells]


def timed_rows(cells: list[CellResult], control: BetweenCells = NO_CONTROL) -> list[dict]:
    """A row for each cell with its times; the columns of a comparison are still empty."""
    own = [_row(cell) for cell in cells]
    with_intervals(own, [f"{name}_" for name in PHASES], control=control)
    return own


def _row(cell: CellResult) -> dict:
    """What the cell tells by itself; the columns of a comparison are still empty."""
    summary = summary_of(cell)
    about, run = summary.get("ladder") or {}, run_columns(cell)
    times = phase_columns(summary, PHASES)
    return {
        **place_columns(cell),
        "noise_mark": cell.noisy,
        **worst_status(cell),
        **dict.fromkeys(each.name for each in STANDING),
        **times,
        "noisy": None,
        **_rates(cell, times, run.get("device_name")),
        **_memory(cell, summary["modes"]),
        **{each.name: about.get(each.name) for each in COUNTED},
        **dict.fromkeys(ladder_chain.AGREEMENT.names),
        **dict.fromkeys(each.name for each in GAINS),
        **run,
    }


def _rates(cell: CellResult, times: dict, device_name: str | None) -> dict:
    """Tokens per second, TFLOP/s of the model's operations (none for what is computed again), and their share of the
    GPU's peak in the cell's precision (MFU)."""
    spec = cell.entry["spec"]
    peak = peaks.tflops(device_name, spec["precision"]) if device_name and spec["device"] == "cuda" else None
    done, tokens = step_flop(cell), tokens_of(cell)
    columns: dict = {"peak_tflops": peak}
    for prefix in TIMES:
        median = times[f"{prefix}_median_ms"]
        rate = done / median / 1e9 if median and done else None
        columns[f"{prefix}_tokens_per_s"] = 1000 * tokens / median if median and tokens else None
        columns[f"{prefix}_tflops"] = rate
        columns[f"{prefix}_mfu"] = rate / peak if rate and peak else None
    return columns


def _memory(cell: CellResult, modes: dict) -> dict:
    """Peak of the step, else of forward and backward, else the one reached (bytes); and PREDICTED."""
    order = ("step", "forward-backward")
    tried = [name for name in order if any(modes.get(name, {}).get(each.name) for each in PEAKS)]
    mode = next((name for name in tried if modes[name]["status"] == "ok"), tried[0] if tried else None)
    return {
        "peak_mode": mode,
        "reached_bytes": max((value for name in modes if (value := _in_use(modes[name]))), default=None),
        **peak_columns(modes.get(mode, {})),
        **_predicted(cell),
    }


def _predicted(cell: CellResult) -> dict:
    """PREDICTED: memory of a step in closed form (bytes); all empty for a model of one's own, which has none."""
    spec, shape = cell.entry["spec"], shape_of(cell)
    if shape is None:
        return dict.fromkeys(each.name for each in PREDICTED)
    options = {name: ladder_chain.option(spec, name) for name in ("attention", "optimizer")}
    setup = Setup(shape, spec["batch"], spec["context"], spec["precision"], **options)
    return {
        "predicted_peak_bytes": ladder_checkpoint.peak_bytes(setup, "step", ladder_chain.option(spec, "checkpoint")),
        "boundary_bytes": ladder_checkpoint.boundary_bytes(setup),
        "block_saved_bytes": ladder_checkpoint.block_bytes(setup),
        "predicted_checkpoint": ladder_checkpoint.best_by_rule(setup),
        "predicted_best_checkpoint": ladder_checkpoint.best_by_peak(setup, "step"),
    }


def _in_use(mode: dict) -> float | None:
    """Peak memory of a mode: the allocator's, on a CPU that of the process."""
    return mode.get("peak_allocated_bytes") or mode.get("peak_resident_bytes")


def _place(ladder: list[CellResult], own: dict[str, dict]) -> None:
    for entry, rung, reference in ladder_chain.places([cell.entry for cell in ladder]):
        own[entry["cell"]] |= {
            "rung": rung,
            "aside": rung is None,
            "name": ladder_chain.name(entry, reference),
            "compared_with": reference and reference["cell"],
        }


def _check(ladder: list[CellResult], own: dict[str, dict]) -> None:
    """Loss and gradients of each cell against those of the first that has a loss."""
    found = [(cell, cell.record.get("summary", {}).get("ladder") or {}) for cell in ladder]
    first = next(((cell, about) for cell, about in found if about.get("loss") is not None), None)
    for cell, about in found if first else []:
        precisions = tuple(each.entry["spec"]["precision"] for each in (cell, first[0]))
        own[cell.name] |= ladder_chain.compare(about, first[1], precisions)


def _compare(ladder: list[CellResult], own: dict[str, dict]) -> None:
    """Gains over the rung before and over the first. What has no time, or computes something else, is no rung: the one
    before it takes its place."""
    rungs = [own[entry["cell"]] for entry in ladder_chain.chain([cell.entry for cell in ladder])]
    start = next((row for row in rungs if _counts(row)), None)
    for cell in ladder:
        row = own[cell.name]
        if not row["aside"]:
            before = [each for each in rungs[: row["rung"]] if _counts(each)]
            row["compared_with"] = before[-1]["cell"] if before else row["compared_with"]
        row["gain_before"], row["gain_of"] = _gain(row, own.get(row["compared_with"]))
        row["gain_start"], row["gain_start_of"] = _gain(row, start)
        row["started_from"] = start["cell"] if row["gain_start"] else None


def _counts(row: dict) -> bool:
    return row["agrees"] is not False and any(row[f"{prefix}_median_ms"] for prefix in TIMES)


def _gain(row: dict, other: dict | None) -> tuple[float | None, str | None]:
    """(the other's time over the row's own, what it is the time of)."""
    if other is None or not (_counts(row) and _counts(other)):
        return None, None
    for prefix, words in TIMES.items():
        times = [each[f"{prefix}_median_ms"] for each in (other, row)]
        if all(times):
            return times[0] / times[1], words
    return None, None
