"""What the first step contains: the excess over a steady step, by part and by call."""

from stepscope.report.data.warmup import (
    Point,
    Setting,
    Warmups,
    largest,
    part_excess,
    profiled_excess,
    ratio,
    set_up_excess,
)
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.table import badge_legend, number
from stepscope.tables.warmup import PARTS, REST, SET_UP

_STEPS = ("first", "steady")
_MOST_OPEN = 12  # rows of a table of calls that are in the Markdown


def profiled_points(setting: Setting) -> list[Point]:
    """The points whose first step was profiled."""
    return [point for point in setting.points if profiled_excess(point.profiled) is not None]


def excess_table(warmups: Warmups, setting: Setting) -> Table | None:
    """First less steady step by part, the set-up's sum against both whole differences; a row a size."""
    points = profiled_points(setting)
    if not points:
        return None
    columns = [Column("size", number=False)]
    columns += [Column(part, group="set-up (ms, share of the profiled excess)") for part in SET_UP]
    columns += [Column("sum", group="set-up (ms, share of the profiled excess)")]
    columns += [Column(part, group="other parts (ms)") for part in PARTS if part not in SET_UP]
    columns += [Column(name, group="first − steady (ms)") for name in ("profiled", "unprofiled")]
    columns += [Column(name, group="set-up over first − steady") for name in ("profiled", "unprofiled")]
    columns += [Column("profiled / unprofiled")]
    rows = [_excess_row(point) for point in points]
    rows += [[Cell(size), Cell(badges=(status,)), *[Cell("–")] * (len(columns) - 2)] for size, status in _lost(setting)]
    notes = [
        "Each part: self time of the host's calls and operators in step 0 less that in a steady step, both under "
        "torch.profiler; all parts together are the profiled excess. The unprofiled excess is of the process without "
        "any warm-up. CUDA loads a kernel's code when it is first launched: module loading is the time in launches and "
        "look-ups of kernels. What an operator does at its first call besides stands under operators."
    ]
    if any((point.profiled.get(f"{PARTS[REST]}_{which}_ms") or 0) < 0 for point in points for which in _STEPS):
        notes.append(f"{REST} is what is left of a step's time; below zero in a step whose threads overlap.")
    caption = f"What the first step spends its excess on: {warmups.place(setting)}."
    return Table("warmup-first", caption, columns, rows, notes + badge_legend(rows))


def _lost(setting: Setting) -> list[tuple[str, str]]:
    """(size, status) of the profiled cells without a result."""
    found = [(point.size, point.profiled["status"]) for point in setting.points if point.profiled]
    return [(size, status) for size, status in found if status in ("oom", "unsupported", "failed")]


def _excess_row(point: Point) -> list[Cell]:
    row, whole, set_up = point.profiled, profiled_excess(point.profiled), set_up_excess(point.profiled)
    unprofiled = point.excess("step")
    cells = [Cell(point.size)]
    for value in (*(part_excess(row, part) for part in SET_UP), set_up):
        share = ratio(value, whole) if whole > 0 else None
        cells.append(_ms(value, formatting.percent(share) if share is not None else ""))
    cells += [_ms(part_excess(row, part)) for part in PARTS if part not in SET_UP]
    cells += [_ms(whole), _ms(unprofiled)]
    return [*cells, _ratio(set_up, whole), _ratio(set_up, unprofiled), _ratio(whole, unprofiled)]


def _ms(value: float | None, below: str = "") -> Cell:
    return Cell(formatting.significant(value) or "–", below, value) if value is not None else Cell("–")


def _ratio(over: float | None, under: float | None) -> Cell:
    found = ratio(over, under)
    return Cell(f"{found:.2f}".replace("-", "\N{MINUS SIGN}"), sort=found) if found is not None else Cell("–")


def parts_table(warmups: Warmups, setting: Setting) -> Table | None:
    """Both profiled steps by part, with calls: a row a size and part."""
    rows = [row for point in profiled_points(setting) for row in _part_rows(point)]
    if not rows:
        return None
    columns = [Column("size", number=False), Column("part", number=False)]
    columns += [Column(name, group="host self time (ms)") for name in ("first step", "steady step")]
    columns += [Column(name, group="calls or faults") for name in ("first step", "steady step")]
    caption = f"The first and a steady step under the profiler, by part: {warmups.place(setting)}."
    return Table("warmup-parts", caption, columns, rows, folded=True, grouped=True)


def _part_rows(point: Point) -> list[list[Cell]]:
    """The parts, and how often the kernel had to give the process a page of memory."""
    faults = [point.profiled.get(f"page_faults_{which}") for which in _STEPS]
    rows = [_part_row(point, part) for part in PARTS]
    if any(map(formatting.known, faults)):
        counts = [number(value, formatting.count) for value in faults]
        rows.append([Cell(point.size), Cell("page faults"), Cell("–"), Cell("–"), *counts])
    return rows


def _part_row(point: Point, part: str) -> list[Cell]:
    row, prefix = point.profiled, PARTS[part]
    cells = [Cell(point.size), Cell(part)]
    cells += [number(row.get(f"{prefix}_{which}_ms"), formatting.significant) for which in _STEPS]
    return cells + [number(row.get(f"{prefix}_{which}_calls"), formatting.count) for which in _STEPS]


def calls_table(warmups: Warmups, setting: Setting) -> Table | None:
    """The calls and operators with the largest excess, a row a size and name; on the page alone where they are many."""
    rows = [_call_row(point, call) for point in profiled_points(setting) for call in largest(point.profiled)]
    if not rows:
        return None
    columns = [Column(name, number=False) for name in ("size", "call or operator", "part")]
    columns += [Column(name, group="host self time (ms)") for name in ("first step", "steady step", "difference")]
    columns += [Column(name, group="calls") for name in ("first step", "steady step")]
    caption = f"The calls that take longest in the first step, against a steady one: {warmups.place(setting)}."
    many = len(rows) > _MOST_OPEN
    return Table("warmup-calls", caption, columns, rows, folded=True, grouped=True, page_only=many)


def _call_row(point: Point, call: dict) -> list[Cell]:
    first, steady = (1e3 * call[f"{which}_seconds"] for which in _STEPS)
    cells = [Cell(point.size), Cell(call["name"], code=True), Cell(call["part"])]
    cells += [number(value, formatting.significant) for value in (first, steady, first - steady)]
    return cells + [number(call.get(f"calls_{which}"), formatting.count) for which in _STEPS]
