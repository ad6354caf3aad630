"""The memory study's tables besides those of cells and samples: all snapshots' analyses, and predictions.

The columns of stepscope.snapshot.table_names are declared here, with those that the study adds.
"""

from stepscope.snapshot.table_names import CATEGORIES, CATEGORY_COLUMNS, COLUMNS
from stepscope.tables.schema import Field, Table, chosen, count, flag, number, text
from stepscope.tables.training import KEY

FORMULA = text("formula", "what makes up the size in closed form; empty where nothing is known or it is too long")
WITH_FORMULA = ("largest", "saved")

COMMON = (
    text("device", "number of the GPU; 0 on a CPU"),
    number("step", "", "number of the step, from 0; empty between steps"),
    text("phase", "phase of the step; empty outside all"),
    text("category", f"what the memory is for: {', '.join(f'`{name}`' for name in CATEGORIES)}"),
    text("module", "part of the model, with one block for all: `blocks.*/attention`"),
    text("frame", "line of Python that allocated it: file, line and function"),
    text("op", "operator that made the tensor"),
    text("shape", "its shape, as `4×128×768`"),
    text("dtype", "its dtype"),
    text("name", "name of the tensor, with one block for all"),
    text("part", "`block`: of one block of the model; `outside`: of no block"),
    number("bytes", "bytes", "memory"),
    count("blocks", "allocations"),
    count("tensors", "tensors"),
    count("count", "how many there are"),
    count("allocations", "allocations that were recorded"),
    number("allocated_bytes", "bytes", "sum of the recorded allocations"),
    number("share", "share", "share of the memory at the peak"),
)
# Table → what a row is, and the fields that only this table has, or that mean something else in it.
TABLES: dict[str, tuple[str, tuple[Field, ...]]] = {
    "summary": (
        "a GPU's history",
        (
            count("events", "events of the history"),
            number("time_recorded_ms", "ms", "time from the first event to the last"),
            flag("cut", "the beginning of the history was overwritten"),
            number("base_bytes", "bytes", "memory in use before the first event"),
            number("start_bytes", "bytes", "memory in use after the first event"),
            number("end_bytes", "bytes", "memory in use after the last event"),
            number("peak_bytes", "bytes", "most memory in use at a time, as requested"),
            number("peak_event", "", "number of the event after which it was in use; -1: before the first"),
            number("peak_ms", "ms", "when that was, from the first event"),
            number("peak_step", "", "number of the step at the peak"),
            text("peak_phase", "phase at the peak"),
            text("peak_module", "part of the model at the peak"),
            number("peak_reserved_bytes", "bytes", "most memory that the allocator held"),
            number("reserved_at_peak_bytes", "bytes", "memory that the allocator held at the peak"),
            number("unused_at_peak_bytes", "bytes", "of it, what was not in use"),
            number("largest_unused_block_bytes", "bytes", "largest unused block when the snapshot was taken"),
            number("rounding_bytes", "bytes", "what blocks in use had beyond what was requested, at that time"),
            flag("expandable_segments", "the allocator's segments could grow"),
            number("unknown_share_at_peak", "share", "share of the memory at the peak whose purpose is not known"),
            number("without_frames_share", "share", "share of the allocated bytes that no line of Python is known for"),
            count("annotations", "annotations of the history that were used"),
            number(
                "peak_rounded_bytes",
                "bytes",
                "memory in use at the peak as the allocator rounds each request, to 512 bytes",
                is_optional=True,
            ),
            number(
                "unknown_before_recording_bytes",
                "bytes",
                "of the memory at the peak whose purpose is not known, what was allocated before the recording began",
                is_optional=True,
            ),
            count("ooms", "how often memory ran out"),
            number("oom_requested_bytes", "bytes", "what was requested when it first ran out"),
            number("oom_free_bytes", "bytes", "what was free then"),
            text("oom_phase", "phase at that time"),
            text("oom_module", "part of the model at that time"),
            text("oom_frame", "line of Python that requested it"),
        ),
    ),
    "timeline": (
        "a point in time",
        (
            number("event", "", "number of the event before; -1: before the first"),
            number("time_ms", "ms", "time from the first event"),
            number("active_bytes", "bytes", "memory in use"),
            number("reserved_bytes", "bytes", "memory that the allocator held"),
            *(
                number(column, "bytes", f"memory in use for {name}")
                for column, name in zip(CATEGORY_COLUMNS, CATEGORIES, strict=True)
            ),
        ),
    ),
    "phases": (
        "a stretch of the history in one phase of a step",
        (
            number("start_event", "", "number of its first event"),
            number("end_event", "", "number of its last event"),
            number("start_ms", "ms", "time of its first event, from that of the history"),
            number("end_ms", "ms", "time of its last event"),
            number("start_bytes", "bytes", "memory in use before it"),
            number("end_bytes", "bytes", "memory in use after it"),
            number("peak_bytes", "bytes", "most memory in use in it"),
            number("peak_event", "", "number of the event after which that was in use"),
            count("allocations", "allocations in it"),
            number("allocated_bytes", "bytes", "sum of these"),
            count("frees", "allocations that were freed in it"),
            number("freed_bytes", "bytes", "sum of these"),
        ),
    ),
    "peak": ("a category at the peak", ()),
    "peak_lines": ("a category, part of the model and line at the peak; `other`: all smaller ones", ()),
    "largest": (
        "a kind of large allocation",
        (
            number("rank", "", "place by size, from 1"),
            number("bytes", "bytes", "size of one"),
            count("alive_at_peak", "how many of them are alive at the peak"),
            text("step_phase", "phase that allocates it"),
            number("lifetime_ms", "ms", "median time until it is freed, of those that are"),
        ),
    ),
    "churn": ("a phase, part of the model and line that allocates", ()),
    "saved": (
        "a kind of tensor that autograd saved for the backward pass",
        (number("bytes", "bytes", "size of all of them"),),
    ),
    "tensors": ("a category of named tensors", (number("bytes", "bytes", "size of all of them"),)),
    "accounting": (
        "an item of the cell's memory",
        (
            text("item", "what it is, as `parameters`, `saved by a block`, `peak`"),
            number("predicted_bytes", "bytes", "its size in closed form"),
            number("measured_bytes", "bytes", "its size as measured; empty: not measured"),
            FORMULA,
        ),
    ),
    "predicted": (
        "a part of what is in use at the predicted peak",
        (
            text("name", "what it is"),
            number("bytes", "bytes", "size of all of them"),
            text("formula", "what makes up the size in closed form"),
        ),
    ),
}
ADDED = {
    "accounting": ("item", "predicted_bytes", "measured_bytes", "formula"),
    "predicted": ("category", "module", "name", "count", "bytes", "formula"),
}


def _fields(name: str) -> tuple[Field, ...]:
    columns = (*COLUMNS[name], *(["formula"] * (name in WITH_FORMULA))) if name in COLUMNS else ADDED[name]
    return chosen(columns, COMMON, [FORMULA], TABLES[name][1])


ANALYSES = {name: Table(f"memory_{name}", TABLES[name][0], (KEY, *_fields(name))) for name in (*COLUMNS, *ADDED)}
