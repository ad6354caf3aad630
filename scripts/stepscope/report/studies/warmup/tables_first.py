"""Tables of what the first step contains: the excess over a steady step, by part and by call."""

from stepscope.report.data.warmup import (
    Setting,
    SizeRuns,
    Warmups,
    largest,
    part_excess,
    profiled_excess,
    profiled_points,
    set_up_excess,
)
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.studies.warmup.tables import lost
from stepscope.tables.columns import ratio
from stepscope.tables.warmup import PARTS, REST, SET_UP

_STEPS = ("first", "steady")
_EXCESS_NOTE = (
    "Each part: self time of the host's calls and operators in step 0 less that in a steady step, both under "
    "torch.profiler; all parts together are the profiled excess. The unprofiled excess is of the process without any "
    "warm-up. CUDA loads a kernel's code when it is first launched: module loading is the time in launches and "
    "look-ups of kernels. Every step calls matrix products; what the first takes longer for them is their library's "
    "set-up. What an operator does at its first call besides stands under operators."
)
_REST_NOTE = f"{REST} is what is left of a step's time; below zero in a step whose threads overlap."


def excess_table(warmups: Warmups, setting: Setting) -> Table | None:
    """First less steady step by part, the set-up's sum against both whole differences; a row a size."""
    points = profiled_points(setting)
    if not points:
        return None
    without = [
        point for point in setting.points if profiled_excess(point.profiled) is None and lost(point.profiled or {})
    ]
    set_up, others = "set-up (ms, share of the profiled excess)", [part for part in PARTS if part not in SET_UP]
    present = [part for part in SET_UP if any(part_excess(point.profiled, part) for point in points)] or SET_UP[:1]
    columns = [
        Column("size", number=False, value=lambda point: point.size),
        *(
            Column(part, group=set_up, value=lambda point, part=part: _set_up_part(point, part, part == present[0]))
            for part in present
        ),
        Column("sum", group=set_up, value=lambda point: _with_share(point, set_up_excess(point.profiled))),
        *(
            Column(part, group="other parts (ms)", value=lambda point, part=part: part_excess(point.profiled, part))
            for part in others
        ),
        Column("profiled", group="first − steady (ms)", value=lambda point: profiled_excess(point.profiled)),
        Column("unprofiled", group="first − steady (ms)", value=_unprofiled),
        _ratio_column(
            "profiled", "set-up over first − steady", lambda row, _: ratio(set_up_excess(row), profiled_excess(row))
        ),
        _ratio_column("unprofiled", "set-up over first − steady", lambda row, plain: ratio(set_up_excess(row), plain)),
        _ratio_column("profiled / unprofiled", "", lambda row, plain: ratio(profiled_excess(row), plain)),
    ]
    rest = [point.profiled.get(f"{PARTS[REST]}_{which}_ms") for point in points for which in _STEPS]
    notes = [_EXCESS_NOTE, _REST_NOTE if any((value or 0) < 0 for value in rest) else ""]
    caption = f"What the first step spends its excess on: {warmups.place(setting)}."
    return table.build("warmup-first", caption, columns, [*points, *without], notes)


def _set_up_part(point: SizeRuns, part: str, is_first: bool) -> TableCell:
    """A part of the set-up; in the first one stands why there is none."""
    badges = lost(point.profiled) if is_first else ()
    return _with_share(point, part_excess(point.profiled, part), badges)


def _with_share(point: SizeRuns, value: float | None, badges: tuple[str, ...] = ()) -> TableCell:
    """ms over their share of the profiled excess."""
    whole = profiled_excess(point.profiled)
    share = ratio(value, whole) if whole and whole > 0 else None
    return table.number(value, below=formatting.percent(share), badges=badges)


def _unprofiled(point: SizeRuns) -> float | None:
    """The excess without a profiler, of a point that was profiled."""
    return None if profiled_excess(point.profiled) is None else point.excess("step")


def _ratio_column(name: str, group: str, found) -> Column:
    """A ratio of a profiled row and the unprofiled excess."""
    return Column(name, group=group, value=lambda point: found(point.profiled, _unprofiled(point)), show=_two_decimals)


def _two_decimals(value: float) -> str:
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def parts_table(warmups: Warmups, setting: Setting) -> Table | None:
    """Both profiled steps by part, with calls, and how often the kernel had to give the process a page of memory."""
    rows = [row for point in profiled_points(setting) for row in _parts(point)]
    columns = [
        Column("size", number=False, value="size"),
        Column("part", number=False, value="part"),
        *(Column(f"{which} step", group="host self time (ms)", value=f"{which}_ms") for which in _STEPS),
        *(
            Column(f"{which} step", group="calls or faults", value=f"{which}_calls", show=formatting.count)
            for which in _STEPS
        ),
    ]
    caption = f"The first and a steady step under the profiler, by part: {warmups.place(setting)}."
    return table.build("warmup-parts", caption, columns, rows, folded=True, grouped=True)


def _parts(point: SizeRuns) -> list[dict]:
    """Part, ms and calls of both steps, a row a part; the page faults last, if they were counted."""
    fields = [f"{which}_{what}" for which in _STEPS for what in ("ms", "calls")]
    rows = [
        {"part": part} | {field: point.profiled.get(f"{prefix}_{field}") for field in fields}
        for part, prefix in PARTS.items()
        if formatting.known(point.profiled.get(f"{prefix}_first_ms"))  # an older record does not know all of them
    ]
    faults = {f"{which}_calls": point.profiled.get(f"page_faults_{which}") for which in _STEPS}
    if any(map(formatting.known, faults.values())):
        rows.append({"part": "page faults"} | faults)
    return [{"size": point.size} | row for row in rows]


def calls_table(warmups: Warmups, setting: Setting) -> Table | None:
    """The calls and operators with the largest excess, a row a size and name; on the page alone where they are many."""
    rows = [_call(point, call) for point in profiled_points(setting) for call in largest(point.profiled)]
    time = "host self time (ms)"
    columns = [
        Column("size", number=False, value="size"),
        Column("call or operator", number=False, value=lambda call: TableCell(call["name"], code=True)),
        Column("part", number=False, value="part"),
        *(Column(f"{which} step", group=time, value=f"{which}_ms") for which in _STEPS),
        Column("difference", group=time, value=lambda call: call["first_ms"] - call["steady_ms"]),
        *(Column(f"{which} step", group="calls", value=f"calls_{which}", show=formatting.count) for which in _STEPS),
    ]
    caption = f"The calls that take longest in the first step, against a steady one: {warmups.place(setting)}."
    return table.build("warmup-calls", caption, columns, rows, folded=True, grouped=True)


def _call(point: SizeRuns, call: dict) -> dict:
    return call | {"size": point.size} | {f"{which}_ms": 1e3 * call[f"{which}_seconds"] for which in _STEPS}
