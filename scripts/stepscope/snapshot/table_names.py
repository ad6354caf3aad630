"""The tables of a memory snapshot. Standard library only: the workflow's rules and the tidy tables name them too.

Bytes are those that were requested, times are milliseconds since the first event, and an event is its number in the
device's history; state "after event -1" is that before the first one.
"""

CATEGORIES: tuple[str, ...] = (
    "parameters",
    "gradients",
    "optimizer state",
    "activations",
    "cast weights",
    "buffers",
    "workspace",
    "unknown",
)
"""What memory is for, in the order in which tables and figures show it. activations: all that the forward pass makes
and that is nothing of the others; cast weights: autocast's low-precision copies; buffers: tables, masks and the batch;
workspace: what backward and optimizer need besides gradients, and libraries' own buffers."""

CATEGORY_COLUMNS: tuple[str, ...] = tuple(name.replace(" ", "_") for name in CATEGORIES)

COLUMNS: dict[str, tuple[str, ...]] = {
    "summary": (
        *("device", "events", "time_recorded_ms", "cut", "base_bytes", "start_bytes", "end_bytes"),
        *("peak_bytes", "peak_event", "peak_ms", "peak_step", "peak_phase", "peak_module"),
        *("peak_reserved_bytes", "reserved_at_peak_bytes", "unused_at_peak_bytes", "largest_unused_block_bytes"),
        *("rounding_bytes", "expandable_segments", "allocations", "allocated_bytes"),
        *("unknown_share_at_peak", "without_frames_share", "annotations"),
        *("peak_rounded_bytes", "unknown_before_recording_bytes"),
        *("ooms", "oom_requested_bytes", "oom_free_bytes", "oom_phase", "oom_module", "oom_frame"),
    ),
    "timeline": (
        *("device", "event", "time_ms", "step", "phase", "active_bytes", "reserved_bytes"),
        *CATEGORY_COLUMNS,
    ),
    "phases": (
        *("device", "step", "phase", "start_event", "end_event", "start_ms", "end_ms", "start_bytes", "end_bytes"),
        *("peak_bytes", "peak_event", "allocations", "allocated_bytes", "frees", "freed_bytes"),
    ),
    "peak": ("device", "category", "bytes", "blocks", "share"),
    "peak_lines": ("device", "category", "module", "frame", "bytes", "blocks", "share"),
    "largest": (
        *("device", "rank", "bytes", "count", "alive_at_peak", "category", "step_phase", "module", "frame"),
        *("op", "shape", "dtype", "name", "lifetime_ms"),
    ),
    "churn": ("device", "phase", "module", "frame", "allocations", "bytes"),
    "saved": ("part", "module", "op", "shape", "dtype", "category", "tensors", "bytes"),
    "tensors": ("category", "part", "tensors", "bytes"),
}
"""Table → its columns, in the order in which they are written."""

TABLES = tuple(COLUMNS)

FURTHER: dict[str, tuple[str, ...]] = {
    "stacks": ("device", "rank", "bytes", "blocks", "share", "category", "stack"),
    "segments": (
        *("device", "address", "stream", "bytes", "active_bytes", "unused_bytes", "unused_share"),
        *("largest_unused_bytes", "blocks", "active_blocks"),
    ),
}
"""Tables that analyze_snapshot.py makes besides: what is alive at the peak by whole stacks, and the segments at the
end, those with the most unused memory first."""
