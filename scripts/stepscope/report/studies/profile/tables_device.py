"""Tables of one profiled cell: busy and idle time, gaps, calls, modules, lines."""

from stepscope.report.data.profile import GPU, PHASES, Profile
from stepscope.report.kit import table
from stepscope.report.kit.blocks import Column, Table
from stepscope.report.kit.formatting import mean_count, percentage, rounded
from stepscope.report.studies.profile.tables import FOUR_DIGITS
from stepscope.report.studies.profile.tables_kernels import in_order

_MOST_CALLS, _MOST_LINES = 12, 24
_ORDER = ("all", "step", *PHASES[:-1])
_PHASE = Column("phase", number=False, value=lambda line: table.named(line["phase"]))
# The unit of each column of gaps, and its field.
_GAPS = {
    "number": ("a step", "gaps_per_step"),
    "total": ("ms a step", "gap_ms_per_step"),
    "median": ("µs", "gap_median_us"),
    "mean": ("µs", "gap_mean_us"),
    "max": ("µs", "gap_max_us"),
}


def busy_table(profile: Profile, row: dict, name: str) -> Table | None:
    """Busy and idle, compute against memory operations, queue delay, by phase."""
    rows, words = profile.rows("busy", row["cell"]), profile.words(row)
    several = len(rows) and rows["device"].nunique() > 1
    columns = [
        _PHASE,
        *([Column("device", number=False, value="device", show=str)] if several else []),
        *(
            Column(label, group="time of a step (ms)", value=f"{key}_ms_per_step", show=FOUR_DIGITS)
            for label, key in (("open", "wall"), ("busy", "busy"), ("idle", "idle"))
        ),
        Column("busy", "%", value="busy_share_of_wall", show=percentage),
        *(_LAUNCHED if words is GPU else []),
    ]
    what = "the GPU busy and idle while each phase is open on the host" if words is GPU else "operators running and not"
    caption = f"{name}: {what}, under the profiler."
    note = "All: from the first to the last event of the recording. Open: the host time of the phase's range."
    if words is GPU:
        note += (
            " Busy: any kernel or copy runs, also one that an earlier phase launched. Queue delay: from the end of the "
            "launching call to the start of what it launched. The profiler slows the host, so that the verdict above "
            "takes the step without it."
        )
    return table.build(f"busy-{row['cell']}", caption, columns, in_order(rows, _ORDER), [note])


_LAUNCHED = (
    Column("compute", "ms", "launched in it", value="compute_ms_per_step", show=rounded),
    Column("memory", "ms", "launched in it", value="memory_ms_per_step", show=rounded),
    Column("compute", "%", "launched in it", value="compute_share_of_operations_time", show=percentage),
    *(
        Column(key, group="queue delay (µs)", value=f"queue_delay_{key}_us", show=rounded, optional=True)
        for key in ("median", "mean", "max")
    ),
)


def gaps_table(profile: Profile, row: dict, name: str) -> Table | None:
    """Gaps between kernels beside the gaps between CUDA calls, by phase: two things."""
    rows, calls, words = profile.rows("busy", row["cell"]), profile.rows("api_gaps", row["cell"]), profile.words(row)
    if rows.empty or "gaps_per_step" not in rows or rows["gaps_per_step"].isna().all():
        return None
    of_calls = {line["phase"]: line for line in calls.to_dict("records")}
    columns = [_PHASE, *_gaps(f"between {words.operations}", lambda line: line)]
    between = (
        f"Between {words.operations}: nothing runs on the device between two that one phase launched."
        if words is GPU
        else "Between operators: none runs."
    )
    caption = f"{name}: gaps between {words.operations}"
    if of_calls:
        own, group = (lambda line: of_calls.get(line["phase"], {})), "between CUDA calls"
        columns += [
            Column("calls", "a step", group, value=lambda line: own(line).get("calls_per_step"), show=mean_count),
            *_gaps(group, own),
        ]
        caption += ", and gaps between CUDA calls"
        between += (
            " Between CUDA calls: from the end of a call to the start of the next on the same thread, while Python and "
            "PyTorch work or the thread waits; the threads are added up. Look-ups (cuKernelGetName) do not count."
        )
    lines = in_order(rows.drop_duplicates("phase"), _ORDER)
    return table.build(f"gaps-{row['cell']}", f"{caption}.", columns, lines, [between])


def _gaps(group: str, line_of) -> list[Column]:
    """The columns of gaps; line_of gives the line that holds them for a line of the table."""
    return [
        Column(
            label,
            unit,
            group,
            value=lambda line, field=field: line_of(line).get(field),
            show=mean_count if label == "number" else rounded,
        )
        for label, (unit, field) in _GAPS.items()
    ]


def calls_table(profile: Profile, row: dict, name: str, kind: str) -> Table | None:
    """CUDA calls (`api_calls`) or calls into the operating system (`os_calls`) by name."""
    rows = profile.rows(kind, row["cell"])
    what, share = "CUDA calls", "share_of_api_time"
    if kind == "os_calls":
        what, share = "operating system calls", "share_of_os_call_time"
    columns = [
        Column("call", number=False, wrap=True, value=lambda call: table.named(call["name"], 70)),
        Column("number", "a step", value="calls_per_step", show=mean_count),
        Column("time", "ms a step", value="ms_per_step", show=rounded),
        Column("share of their time", "%", value=share, show=percentage),
        *(Column(key, "µs", value=f"{key}_us", show=rounded) for key in ("mean", "median", "max")),
    ]
    left = len(rows) - _MOST_CALLS
    note = [f"{left:,} more names are in the table's file."] if left > 0 else []
    shown = rows.head(_MOST_CALLS).to_dict("records")
    return table.build(f"{kind}-{row['cell']}", f"{name}: {what} by name.", columns, shown, note)


def memory_table(profile: Profile, row: dict, name: str) -> Table | None:
    """Copies by their direction, memsets, and kernels that fill, by phase; None where there were none."""
    rows = profile.rows("memory_operations", row["cell"])
    rows = rows[rows["phase"] != "all"] if len(rows) and set(rows["phase"]) != {"all"} else rows
    words = profile.words(row)
    columns = [
        _PHASE,
        Column("kind", number=False, value="kind"),
        Column("direction or name", number=False, wrap=True, value=lambda line: table.named(line["name"], 70)),
        Column("number", "a step", value="instances_per_step", show=mean_count),
        Column("time", "ms a step", value="ms_per_step", show=rounded),
        Column(f"share of the phase's {words.time}", "%", value="share_of_phase_gpu_time", show=percentage),
    ]
    lines = in_order(rows, PHASES) if len(rows) else []
    note = (
        f"Fill: a {words.operation} that writes one constant; a memset needs none. What a {words.operation} copies or "
    )
    note += "casts stands in the categories."
    return table.build(f"memory-{row['cell']}", f"{name}: what moved or set memory, by phase.", columns, lines, [note])


def modules_table(profile: Profile, row: dict, name: str) -> Table | None:
    """Which modules the backward pass's kernels belong to; None where the trace does not tell."""
    rows, words = profile.rows("modules", row["cell"]), profile.words(row)
    share = f"share of the backward pass's {words.time}"
    columns = [
        Column("module", number=False, wrap=True, value=lambda line: table.named(line["module"], 80)),
        Column(words.operations, "a step", value="kernels_per_step", show=mean_count),
        Column(words.time, "ms a step", value="gpu_ms_per_step", show=rounded),
        Column(share, "%", value="share_of_backward_gpu_time", show=percentage),
        Column("number", "a step", "elementwise", value="elementwise_per_step", show=mean_count, optional=True),
        Column("time", "ms a step", "elementwise", value="elementwise_ms_per_step", show=rounded, optional=True),
    ]
    caption = f"{name}: {words.operations} of the backward pass, by the module whose forward pass they belong to."
    return table.build(f"modules-{row['cell']}", caption, columns, rows.head(_MOST_LINES).to_dict("records"))


def lines_table(profile: Profile, row: dict, name: str) -> Table | None:
    """Python file and line -> GPU time; None where the trace has no backtraces."""
    rows, words = profile.rows("lines", row["cell"]), profile.words(row)
    columns = [
        Column("file", number=False, wrap=True, value=lambda line: table.named(line["file"], 70)),
        Column("line", value="line", show=lambda line: f"{line:.0f}"),
        Column("operations", "a step", value="operations_per_step", show=mean_count),
        Column(words.time, "ms a step", value="gpu_ms_per_step", show=rounded),
        Column(f"share of {words.time}", "%", value="share_of_gpu_time", show=percentage),
    ]
    caption = f"{name}: Python lines that launched most {words.time}."
    return table.build(f"lines-{row['cell']}", caption, columns, rows.head(_MOST_LINES).to_dict("records"))
