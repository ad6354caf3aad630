"""Tables of one cell's memory: its largest allocations, what was alive at the peak, churn, phases, accounting."""

from stepscope.report.data.memory import Memory, part
from stepscope.report.data.profile import count, named, number
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.kit.sizes import change_cell, size_cell
from stepscope.report.studies.memory.blocks import apart

MOST_LARGEST, MOST_LINES, MOST_CHURN = 12, 12, 8
_NAME = 60


def share(value: object, whole: object) -> Cell:
    """A part in per cent of the whole, the sign in the heading."""
    if not (formatting.known(value) and formatting.known(whole) and whole):
        return Cell("–")
    return Cell(formatting.fixed(100 * value / whole, 1), sort=value / whole)


def frame(text: object) -> Cell:
    """A line of code as `naive.py:21 attention`, the whole path as the title."""
    whole = str(text or "")
    if not whole:
        return Cell("–")
    place, _, function = whole.partition(" ")
    short = f"{place.rsplit('/', 1)[-1]} {function}".strip()
    return Cell(named(short, _NAME).text, code=True, title=whole)


def module(text: object, below: str = "") -> Cell:
    """A part of the model, or a tensor's name."""
    return named(part(text) or "–", _NAME, below)


def largest_table(memory: Memory, row: dict, name: str) -> Table | None:
    """The largest allocations, equal ones in a row: how large, how many, what, by which line, and their formula."""
    rows = memory.rows("largest", row)
    if not rows:
        return None
    columns = [Column("size of one"), Column("count"), Column("at the peak"), Column("category, phase", number=False)]
    columns += [Column("part of the model, made by", number=False), Column("line of code", number=False)]
    columns += [Column("formula, shape", number=False), Column("lives", "ms, median")]
    lines = []
    for each in rows[:MOST_LARGEST]:
        line = [size_cell(each["bytes"]), count(each["count"]), count(each["alive_at_peak"])]
        line.append(named(each["category"], _NAME, str(each["step_phase"] or "")))
        line.append(module(each["module"] or each["name"], str(each["op"] or "")))
        lines.append([*line, frame(each["frame"]), _formula(each), number(each["lifetime_ms"], 3)])
    caption = f"{name}: the largest allocations of the recorded steps, equal ones together."
    notes = [
        "Count: how often in the recording, what was there at its start included; at the peak: how many of them were "
        "alive then. The line is the first of ours on the stack; autograd runs backward from C++, without one."
    ]
    notes += [_left(rows, MOST_LARGEST)] if len(rows) > MOST_LARGEST else []
    return Table(f"largest-{row['cell']}", caption, columns, lines, notes)


def _formula(each: dict) -> Cell:
    """What the size is made of, and below it the shape and the type."""
    known = [str(each[key]) for key in ("shape", "dtype") if each[key]]
    return Cell(str(each["formula"]), ", ".join(known)) if each["formula"] else Cell(", ".join(known) or "–")


def _left(rows: list[dict], most: int) -> str:
    return f"{len(rows) - most:,} more rows are in the table's file."


def lines_table(memory: Memory, row: dict, name: str) -> Table | None:
    """What was alive at the peak, by the line of code that made it."""
    rows, whole = memory.rows("peak_lines", row), memory.requested(row)
    if not rows:
        return None
    columns = [Column("alive"), Column("share", "%"), Column("blocks of memory"), Column("category", number=False)]
    columns += [Column("part of the model", number=False), Column("line of code", number=False)]
    lines = []
    for each in rows[:MOST_LINES]:
        line = [size_cell(each["bytes"]), share(each["bytes"], whole), count(each["blocks"])]
        lines.append([*line, named(each["category"]), module(each["module"]), frame(each["frame"])])
    rest = rows[MOST_LINES:]
    if rest:
        left, blocks = (sum(each[key] for each in rest) for key in ("bytes", "blocks"))
        line = [size_cell(left), share(left, whole), count(blocks)]
        lines.append([*line, Cell(f"{len(rest):,} more rows"), Cell("–"), Cell("–")])
    caption = f"{name}: what was alive at the peak, by the line of code that made it."
    return Table(f"lines-{row['cell']}", caption, columns, lines, [])


def churn_table(memory: Memory, row: dict, name: str) -> Table | None:
    """The lines that allocate most, whether or not it stays."""
    rows = memory.rows("churn", row)
    if not rows:
        return None
    summary = memory.summary(row)
    columns = [Column("allocated"), Column("share", "%"), Column("allocations"), Column("phase", number=False)]
    columns += [Column("part of the model", number=False), Column("line of code", number=False)]
    lines = []
    for each in rows[:MOST_CHURN]:
        line = [size_cell(each["bytes"]), share(each["bytes"], summary.get("allocated_bytes"))]
        line += [count(each["allocations"]), named(each["phase"] or "–")]
        lines.append([*line, module(each["module"]), frame(each["frame"])])
    caption = f"{name}: the lines that allocate most in the recorded steps, freed soon or not."
    return Table(f"churn-{row['cell']}", caption, columns, lines, [])


def phases_table(memory: Memory, row: dict, name: str) -> Table | None:
    """A row a recorded phase: memory at its start and end, its peak, what it allocates and frees."""
    rows = [each for each in memory.rows("phases", row) if each["phase"]]
    if not rows:
        return None
    several = len({each["step"] for each in rows}) > 1
    columns = [Column("phase", number=False)] + ([Column("step")] if several else [])
    columns += [Column(key, group="active memory") for key in ("at the start", "peak", "at the end")]
    columns += [Column("number", group="allocations"), Column("bytes", group="allocations")]
    columns += [Column("number", group="frees"), Column("bytes", group="frees")]
    lines = []
    for each in rows:
        line = [named(each["phase"]), *([count(each["step"])] if several else [])]
        line += [size_cell(each[f"{key}_bytes"]) for key in ("start", "peak", "end")]
        line += [count(each["allocations"]), size_cell(each["allocated_bytes"])]
        lines.append([*line, count(each["frees"]), size_cell(each["freed_bytes"])])
    return Table(f"memory-phases-{row['cell']}", f"{name}: the recorded phases.", columns, lines, [])


def accounts_table(memory: Memory, row: dict, name: str) -> Table | None:
    """Every item of the closed form beside what was measured."""
    rows = memory.rows("accounting", row)
    if not rows:
        return None
    columns = [Column("item", number=False), Column("predicted"), Column("measured"), Column("difference", "%")]
    columns.append(Column("formula", number=False, wrap=True))
    lines = []
    for each in rows:
        line = [named(each["item"]), size_cell(each["predicted_bytes"]), size_cell(each["measured_bytes"])]
        lines.append([*line, change_cell(apart(each)), Cell(str(each["formula"] or "–"))])
    caption = f"{name}: the closed form beside what was measured."
    note = "Difference: (predicted − measured) / measured. A dash: not measured, or a sum of too many terms to show."
    notes = [note]
    if row["recorded"] == "warm-up":
        notes.append("Memory ran out before a whole step was seen: what was made or saved until then is not compared.")
    return Table(f"accounts-{row['cell']}", caption, columns, lines, notes)
