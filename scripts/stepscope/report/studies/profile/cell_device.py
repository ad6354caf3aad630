"""Tables of one profiled cell: busy and idle time, gaps, calls, modules, lines; and whether the pieces add up."""

import pandas as pd

from stepscope.report.data.profile import GPU, PHASES, Profile, count, named, number, share
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table

_MOST_NAMES = 12
_TOLERANCE = 1e-3
# What must be zero for the tables to hold all that the trace holds -> how to say it.
_ZERO = {
    "kernels_not_linked_to_a_launch": "{} kernels are not linked to a launch, and so to no phase",
    "operations_not_linked_to_a_launch": "{} operations are not linked to a launch, and so to no phase",
    "operations_outside_every_phase": "{} operations lie outside every phase",
    "ranges_cut_off_by_the_end": "{} ranges were cut off by the end of the recording",
    "graphs_traced_as_a_whole": "{} CUDA graphs were traced as a whole, so that their kernels are not told apart",
}


def busy_table(profile: Profile, row: dict, name: str) -> Table | None:
    """Busy and idle, compute against memory operations, queue delay, by phase."""
    rows, words = profile.rows("busy", row["cell"]), profile.words(row)
    if rows.empty:
        return None
    several = rows["device"].nunique() > 1
    group = "time of a step (ms)"
    columns = [Column("phase", number=False)] + ([Column("device", number=False)] if several else [])
    columns += [Column("open", group=group), Column("busy", group=group), Column("idle", group=group)]
    columns += [Column("busy", "%")]
    delays = [key for key in ("median", "mean", "max") if _any(rows, f"queue_delay_{key}_us")]
    if words is GPU:
        columns += [Column("compute", "ms", group="launched in it"), Column("memory", "ms", group="launched in it")]
        columns += [Column("compute", "%", group="launched in it")]
        columns += [Column(key, group="queue delay (µs)") for key in delays]
    lines = []
    for line in _in_order(rows):
        cells = [named(line["phase"])] + ([Cell(str(line["device"]))] if several else [])
        cells += [number(line[f"{key}_ms_per_step"], 4) for key in ("wall", "busy", "idle")]
        cells.append(share(line["busy_share_of_wall"]))
        if words is GPU:
            cells += [number(line[f"{key}_ms_per_step"], 3) for key in ("compute", "memory")]
            cells.append(share(line["compute_share_of_operations_time"]))
            cells += [number(line[f"queue_delay_{key}_us"], 3) for key in delays]
        lines.append(cells)
    what = "the GPU busy and idle while each phase is open on the host" if words is GPU else "operators running and not"
    caption = f"{name}: {what}, under the profiler."
    note = "All: from the first to the last event of the recording. Open: the host time of the phase's range."
    if words is GPU:
        note += (
            " Busy: any kernel or copy runs, also one that an earlier phase launched. Queue delay: from the end of the "
            "launching call to the start of what it launched. The profiler slows the host, so that the verdict above "
            "takes the step without it."
        )
    return Table(f"busy-{row['cell']}", caption, columns, lines, [note])


def _in_order(rows: pd.DataFrame) -> list[dict]:
    order = {phase: at for at, phase in enumerate(("all", "step", *PHASES[:-1]))}
    rank = rows["phase"].map(lambda phase: order.get(phase, len(order)))
    return rows.assign(_rank=rank).sort_values("_rank", kind="stable").to_dict("records")


def _any(rows: pd.DataFrame, name: str) -> bool:
    return name in rows and rows[name].notna().any()


def gaps_table(profile: Profile, row: dict, name: str) -> Table | None:
    """Gaps between kernels beside the gaps between CUDA calls, by phase: two things."""
    rows, calls, words = profile.rows("busy", row["cell"]), profile.rows("api_gaps", row["cell"]), profile.words(row)
    if rows.empty or not _any(rows, "gaps_per_step"):
        return None
    keys = ("number", "total", "median", "mean", "max")
    columns = [Column("phase", number=False)]
    columns += [Column(key, _unit(key), group=f"between {words.operations}") for key in keys]
    of_calls = {line["phase"]: line for line in calls.to_dict("records")} if len(calls) else {}
    if of_calls:
        columns += [Column("calls", "a step", group="between CUDA calls")]
        columns += [Column(key, _unit(key), group="between CUDA calls") for key in keys]
    lines = []
    for line in _in_order(rows.drop_duplicates("phase")):
        cells = [named(line["phase"]), *_gaps(line)]
        if of_calls:
            own = of_calls.get(line["phase"], {})
            cells += [count(own.get("calls_per_step")), *_gaps(own)]
        lines.append(cells)
    caption = f"{name}: gaps between {words.operations}" + (", and gaps between CUDA calls." if of_calls else ".")
    note = (
        f"Between {words.operations}: nothing runs on the device between two that one phase launched."
        if words is GPU
        else "Between operators: none runs."
    )
    if of_calls:
        note += (
            " Between CUDA calls: from the end of a call to the start of the next on the same thread, while Python and "
            "PyTorch work or the thread waits; the threads are added up. Look-ups (cuKernelGetName) do not count."
        )
    return Table(f"gaps-{row['cell']}", caption, columns, lines, [note])


def _unit(key: str) -> str:
    return {"number": "a step", "total": "ms a step"}.get(key, "µs")


def _gaps(line: dict) -> list[Cell]:
    times = [number(line.get(f"gap_{key}_us"), 3) for key in ("median", "mean", "max")]
    return [count(line.get("gaps_per_step")), number(line.get("gap_ms_per_step"), 3), *times]


def calls_table(profile: Profile, row: dict, name: str, kind: str) -> Table | None:
    """CUDA calls (`api_calls`) or calls into the operating system (`os_calls`) by name."""
    rows = profile.rows(kind, row["cell"])
    if rows.empty:
        return None
    what, total = "CUDA calls", "share_of_api_time"
    if kind == "os_calls":
        what, total = "operating system calls", "share_of_os_call_time"
    columns = [Column("call", number=False, wrap=True), Column("number", "a step"), Column("time", "ms a step")]
    columns += [Column("share of their time", "%")] + [Column(key, "µs") for key in ("mean", "median", "max")]
    lines = [
        [named(line["name"], 70), count(line["calls_per_step"]), number(line["ms_per_step"], 3), share(line.get(total))]
        + [number(line[f"{key}_us"], 3) for key in ("mean", "median", "max")]
        for line in rows.head(_MOST_NAMES).to_dict("records")
    ]
    note = [f"{len(rows) - _MOST_NAMES:,} more names are in the table's file."] if len(rows) > _MOST_NAMES else []
    return Table(f"{kind}-{row['cell']}", f"{name}: {what} by name.", columns, lines, note)


def modules_table(profile: Profile, row: dict, name: str) -> Table | None:
    """Which modules the backward pass's kernels belong to; None where the trace does not tell."""
    rows, words = profile.rows("modules", row["cell"]), profile.words(row)
    if rows.empty:
        return None
    columns = [
        Column("module", number=False, wrap=True),
        Column(words.operations, "a step"),
        Column(words.time, "ms a step"),
    ]
    columns += [Column(f"share of the backward pass's {words.time}", "%")]
    lines = [
        [
            named(line["module"], 80),
            count(line["kernels_per_step"]),
            number(line["gpu_ms_per_step"], 3),
            share(line["share_of_backward_gpu_time"]),
        ]
        for line in rows.head(2 * _MOST_NAMES).to_dict("records")
    ]
    caption = f"{name}: {words.operations} of the backward pass, by the module whose forward pass they belong to."
    return Table(f"modules-{row['cell']}", caption, columns, lines, [])


def lines_table(profile: Profile, row: dict, name: str) -> Table | None:
    """Python file and line -> GPU time; None where the trace has no backtraces."""
    rows, words = profile.rows("lines", row["cell"]), profile.words(row)
    if rows.empty:
        return None
    columns = [Column("file", number=False, wrap=True), Column("line"), Column("operations", "a step")]
    columns += [Column(words.time, "ms a step"), Column(f"share of {words.time}", "%")]
    lines = [
        [
            named(line["file"], 70),
            Cell(f"{line['line']:.0f}", sort=line["line"]) if formatting.known(line["line"]) else Cell("–"),
            count(line["operations_per_step"]),
            number(line["gpu_ms_per_step"], 3),
            share(line["share_of_gpu_time"]),
        ]
        for line in rows.head(2 * _MOST_NAMES).to_dict("records")
    ]
    return Table(f"lines-{row['cell']}", f"{name}: Python lines that launched most {words.time}.", columns, lines, [])


def checks(profile: Profile, row: dict) -> tuple[bool, str]:
    """(does the trace hold what it should, a sentence on it)."""
    cell, words = row["cell"], profile.words(row)
    if profile.rows("checks", cell).empty:
        return False, "There are no checks of this trace."
    said = {}
    for quantity, sentence in _ZERO.items():
        value = profile.number_of(cell, quantity)
        if value > 0 and not (quantity.startswith("operations_not") and "kernels_not_linked_to_a_launch" in said):
            said[quantity] = sentence.format(formatting.count(value))
    said |= _sums(profile, cell)
    kernels, memory = (profile.number_of(cell, name) for name in ("kernels", "memory_operations"))
    found = f"{formatting.count(kernels)} {words.operations}"
    if words is GPU:
        found += f" and {formatting.count(memory)} copies and fills of memory"
    if said:
        return False, f"Of {found}: {'; '.join(said.values())}."
    linked = "each is linked to its launch, " if words is GPU else ""
    sums = f"phases and categories add up to the trace's {words.time}"
    return True, f"Of {found} {linked}none lies outside the phases, and {sums}."


def _sums(profile: Profile, cell: str) -> dict[str, str]:
    """What does not add up: phases and categories against the trace's GPU time."""
    phases, categories = profile.rows("phases", cell), profile.rows("categories", cell)
    inside, total = (profile.number_of(cell, name) for name in ("gpu_ms_in_phases", "gpu_ms_total"))
    sums = {"phases": (phases["gpu_exclusive_ms_total"].sum() if len(phases) else 0.0, inside)}
    if len(categories):
        sums["categories"] = (categories.loc[categories["phase"] == "all", "total_ms"].sum(), total)
    return {
        name: f"the {name} add up to {formatting.fixed(float(found), 3)} ms, not to {formatting.fixed(wanted, 3)}"
        for name, (found, wanted) in sums.items()
        if formatting.known(wanted) and abs(found - wanted) > _TOLERANCE * max(wanted, 1e-9)
    }
