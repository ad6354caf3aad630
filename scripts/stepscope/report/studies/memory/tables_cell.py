"""Tables of one cell's memory: its largest allocations, what was alive at the peak, churn, phases, accounting."""

from stepscope.report.data.memory import Memory, apart, part, title
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.report.kit.sizes import bare_percent, bare_percent_change, size

_MOST_LARGEST, _MOST_LINES, _MOST_CHURN = 12, 12, 8  # rows
_LARGEST_NOTE = (
    "Count: how often in the recording, what was there at its start included; at the peak: how many of them were alive "
    "then. The line is the first of ours on the stack; autograd runs backward from C++, without one."
)


def _frame(each: dict) -> TableCell:
    """A line of code as `naive.py:21 attention`, the whole path as the title."""
    whole = str(each["frame"] or "")
    if not whole:
        return table.NOTHING
    place, _, function = whole.partition(" ")
    short = f"{place.rsplit('/', 1)[-1]} {function}".strip()
    return TableCell(table.named(short).text, code=True, title=whole)


def _share(each: dict, whole: float | None) -> float | None:
    return each["bytes"] / whole if formatting.known(each["bytes"]) and formatting.known(whole) and whole else None


def _named(label: str, name: str) -> Column:
    return Column(label, number=False, value=lambda each: table.named(each[name]))


_FRAME = Column("line of code", number=False, value=_frame)
_MODULE = Column("part of the model", number=False, value=lambda each: table.named(part(each["module"])))


def largest_table(memory: Memory, row: dict) -> Table | None:
    """The largest allocations, equal ones in a row: how large, how many, what, by which line, and their formula."""
    rows = memory.rows("largest", row)
    columns = [
        Column("size of one", value="bytes", show=size),
        Column("count", value="count", show=formatting.count),
        Column("at the peak", value="alive_at_peak", show=formatting.count),
        Column(
            "category, phase",
            number=False,
            value=lambda each: table.named(each["category"], below=str(each["step_phase"] or "")),
        ),
        Column(
            "part of the model, made by",
            number=False,
            value=lambda each: table.named(part(each["module"] or each["name"]), below=str(each["op"] or "")),
        ),
        _FRAME,
        Column("formula, shape", number=False, value=_formula),
        Column(
            "lives", "ms, median", value="lifetime_ms", show=lambda time: formatting.significant(time) if time else "0"
        ),
    ]
    caption = f"{title(row, memory)}: the largest allocations of the recorded steps, equal ones together."
    left = len(rows) - _MOST_LARGEST
    notes = [_LARGEST_NOTE, f"{left:,} more rows are in the table's file." if left > 0 else ""]
    return table.build(f"largest-{row['cell']}", caption, columns, rows[:_MOST_LARGEST], notes)


def _formula(each: dict) -> TableCell:
    """What the size is made of, and below it the shape and the type."""
    known = ", ".join(str(each[key]) for key in ("shape", "dtype") if each[key])
    return TableCell(str(each["formula"]), known) if each["formula"] else TableCell(known or "–")


def lines_table(memory: Memory, row: dict) -> Table | None:
    """What was alive at the peak, by the line of code that made it."""
    rows, whole = memory.rows("peak_lines", row), memory.requested(row)
    columns = [
        Column("alive", value="bytes", show=size),
        Column("share", "%", value=lambda each: _share(each, whole), show=bare_percent),
        Column("blocks of memory", value="blocks", show=formatting.count),
        _named("category", "category"),
        _MODULE,
        _FRAME,
    ]
    caption = f"{title(row, memory)}: what was alive at the peak, by the line of code that made it."
    shown, rest = rows[:_MOST_LINES], rows[_MOST_LINES:]
    if rest:
        sums = {key: sum(each[key] for each in rest) for key in ("bytes", "blocks")}
        shown.append({**sums, "category": f"{len(rest):,} more rows", "module": "", "frame": ""})
    return table.build(f"lines-{row['cell']}", caption, columns, shown)


def churn_table(memory: Memory, row: dict) -> Table | None:
    """The lines that allocate most, whether or not it stays."""
    whole = memory.summary(row).get("allocated_bytes")
    columns = [
        Column("allocated", value="bytes", show=size),
        Column("share", "%", value=lambda each: _share(each, whole), show=bare_percent),
        Column("allocations", value="allocations", show=formatting.count),
        _named("phase", "phase"),
        _MODULE,
        _FRAME,
    ]
    caption = f"{title(row, memory)}: the lines that allocate most in the recorded steps, freed soon or not."
    return table.build(f"churn-{row['cell']}", caption, columns, memory.rows("churn", row)[:_MOST_CHURN])


def phases_table(memory: Memory, row: dict) -> Table | None:
    """A row a recorded phase: memory at its start and end, its peak, what it allocates and frees."""
    rows = [each for each in memory.rows("phases", row) if each["phase"]]
    active, allocations, frees = "active memory", "allocations", "frees"
    columns = [
        _named("phase", "phase"),
        *([Column("step", value="step", show=formatting.count)] if table.varying(rows, ["step"]) else []),
        Column("at the start", group=active, value="start_bytes", show=size),
        Column("peak", group=active, value="peak_bytes", show=size),
        Column("at the end", group=active, value="end_bytes", show=size),
        Column("number", group=allocations, value="allocations", show=formatting.count),
        Column("bytes", group=allocations, value="allocated_bytes", show=size),
        Column("number", group=frees, value="frees", show=formatting.count),
        Column("bytes", group=frees, value="freed_bytes", show=size),
    ]
    caption = f"{title(row, memory)}: the recorded phases."
    return table.build(f"memory-phases-{row['cell']}", caption, columns, rows)


def accounts_table(memory: Memory, row: dict) -> Table | None:
    """Every item of the closed form beside what was measured."""
    columns = [
        _named("item", "item"),
        Column("predicted", value="predicted_bytes", show=size),
        Column("measured", value="measured_bytes", show=size),
        Column(
            "difference",
            "%",
            value=lambda each: apart(each["predicted_bytes"], each["measured_bytes"]),
            show=bare_percent_change,
        ),
        Column("formula", number=False, wrap=True, value="formula"),
    ]
    notes = ["Difference: (predicted − measured) / measured. A dash: not measured, or a sum of too many terms to show."]
    if row["recorded"] == "warm-up":
        notes.append("Memory ran out before a whole step was seen: what was made or saved until then is not compared.")
    caption = f"{title(row, memory)}: the closed form beside what was measured."
    return table.build(f"accounts-{row['cell']}", caption, columns, memory.rows("accounting", row), notes)
