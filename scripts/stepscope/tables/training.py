"""What the tables of all studies that train the model share: the place of a cell, its phases, status and memory."""

from collections.abc import Mapping, Sequence

from stepscope.axes import NEUTRAL
from stepscope.model.shape import ModelShape
from stepscope.tables.cells import CellResult
from stepscope.tables.columns import (
    CELL,
    HARDWARE,
    LAUNCHED,
    PRECISION,
    PROCESS,
    SEED,
    STATISTICS,
    STATUS,
    TELEMETRY,
    WARMUP,
    statistics_columns,
)
from stepscope.tables.schema import Field, Group, count, flag, number, text

Series = tuple[str, str, str]  # mode, kind of steps, phase, as in a record's summary

SIZE = text("size", "name of the model's size")
CONTEXT = count("context", "tokens of a sequence")
REPEAT = number("repeat", "", "number of the run of this point, from 1")
SHAPE = (
    count("d_model", "width of the residual stream"),
    count("d_ff", "width inside the feed-forward network"),
    count("num_layers", "blocks"),
    count("num_heads", "attention heads of a block"),
    count("vocab_size", "tokens of the vocabulary"),
)
PLACE = Group(
    "the place of a training cell",
    (
        *(CELL, HARDWARE, SIZE, CONTEXT),
        count("batch", "sequences of a batch"),
        PRECISION,
        text("mode", "how far a step goes: `inference`, `forward`, `forward-backward` or `step`"),
        text("attention", "implementation of attention"),
        text("compile", "what torch.compile compiles: `none`, `block`, `graphs` (in CUDA graphs) or `model`"),
        text("optimizer", "implementation of the optimizer"),
        text("checkpoint", "only the input of every so many blocks is kept for backward; 0: all is kept"),
        REPEAT,
        text("key_value_heads", "heads of K and V in a block; 0: as many as `num_heads`", is_optional=True),
        text(
            "window",
            "tokens that one sees at most, itself and those just before it; 0: all before it",
            is_optional=True,
        ),
        *SHAPE,
        count("parameters", "trainable parameters of the model"),
        SEED,
        WARMUP,
    ),
)
KEY = Group("the key of a training cell", (CELL, HARDWARE, SIZE, CONTEXT, PRECISION, REPEAT))
SAMPLES = Group(
    "a sample of a training cell",
    (
        PROCESS,
        text("mode", "how far the step goes: `inference`, `forward`, `forward-backward` or `step`"),
        text("kind", "`phased`: the device is waited for around each phase; `free`: only around the step"),
        number("step", "", "number of the step, from 0"),
        text("phase", "`inference`, `forward`, `backward` or `optimizer`, or what a free step does as a whole"),
        flag("warmup", "before the measured steps"),
        number("seconds", "s", "time by the host's clock"),
        number("event_seconds", "s", "time between two CUDA events"),
        LAUNCHED,
        *TELEMETRY,
    ),
)
STEPS = count("steps", "measured steps")
PEAKS = (
    number("peak_allocated_bytes", "bytes", "most memory in tensors, by PyTorch's allocator"),
    number("peak_reserved_bytes", "bytes", "most memory that PyTorch's allocator took from the driver"),
    number("peak_resident_bytes", "bytes", "most memory that the process had in RAM; on a CPU"),
)
PEAK_TFLOPS = number("peak_tflops", "TFLOP/s", "the GPU's peak rate in the cell's precision, by its data sheet")
RATES = (
    number("tokens_per_s", "tokens/s", "tokens of a batch over the median"),
    number("tflops", "TFLOP/s", "operations of the model over the median"),
    number("mfu", "share", "the same over the GPU's peak rate (model FLOPs utilisation)"),
)


def shape_of(cell: CellResult) -> ModelShape:
    """The shape of the cell's model."""
    return ModelShape.of(cell.entry["spec"])


def place_columns(cell: CellResult) -> dict:
    """PLACE: where the cell stands in the grid, its options, its model, seed and warm-up."""
    spec = cell.entry["spec"]
    return {
        "cell": cell.name,
        "hardware": cell.hardware,
        "size": cell.entry["size"],
        **{key: spec[key] for key in ("context", "batch", "precision")},
        **{key: spec.get(key, neutral) for key, neutral in NEUTRAL.items()},
        **{each.name: spec[each.name] for each in SHAPE},
        "parameters": shape_of(cell).parameters,
        "seed": spec["seed"],
        "warmup": spec["warmup"],
    }


def keys_of(rows: Sequence[dict]) -> list[list]:
    """The values of KEY of each row."""
    return [[row[name] for name in KEY.names] for row in rows]


def summary_of(cell: CellResult) -> dict:
    """The summary of the cell's record; without modes and phases where there is no record."""
    return cell.record.get("summary", {"modes": {}, "phases": []})


def status_of(cell: CellResult, mode: dict, lost: str = "") -> dict:
    """Status and reason of a cell that runs one mode; `lost` is why the analysis of what it recorded cannot be used."""
    return {
        "status": "failed" if lost else mode.get("status", cell.status),
        "reason": lost or mode.get("reason") or cell.reason,
    }


def worst_status(cell: CellResult) -> dict:
    """Status and reason of a cell that runs several modes: the worst status, and the first reason that there is."""
    modes = summary_of(cell)["modes"].values()
    reasons = [mode["reason"] for mode in modes if mode["reason"]]
    order = ("ok", "unsupported", "oom")
    return {
        "status": max((mode["status"] for mode in modes), key=order.index, default=cell.status),
        "reason": reasons[0] if reasons else cell.reason,
    }


def peak_columns(mode: dict, prefix: str = "") -> dict:
    """PEAKS of a mode, as the record says."""
    return {f"{prefix}{each.name}": mode.get(each.name) for each in PEAKS}


def series_of(summary: dict) -> dict[Series, dict]:
    """The statistics of each series of a summary."""
    return {(entry["mode"], entry["kind"], entry["phase"]): entry for entry in summary["phases"]}


def first_measured(series: dict[Series, dict], candidates: Sequence[Series]) -> dict:
    """The statistics of the first of some series that was measured to its end; empty if none was."""
    return next((series[key] for key in candidates if series.get(key, {}).get("status") == "ok"), {})


def phase_fields(phases: Mapping[str, Sequence[Series]]) -> Group:
    """The columns that phase_columns() fills."""

    def words(candidates: Sequence[Series]) -> str:
        return ", else ".join(f"{phase} in {kind} steps of mode `{mode}`" for mode, kind, phase in candidates)

    members: tuple[Field, ...] = (STATUS, *STATISTICS.members)
    return Group("phase", members, {f"{name}_": words(candidates) for name, candidates in phases.items()})


def phase_columns(summary: dict, phases: Mapping[str, Sequence[Series]]) -> dict:
    """Status and statistics of each phase: those of the first of its series that was measured to its end.

    Without one, the status is that of the last series' mode, the lightest that has the phase.
    """
    series, columns = series_of(summary), {}
    for name, candidates in phases.items():
        found = first_measured(series, candidates)
        mode = summary["modes"].get(candidates[-1][0], {})
        columns[f"{name}_status"] = "ok" if found else mode.get("status")
        columns |= statistics_columns(f"{name}_", found)
    return columns
