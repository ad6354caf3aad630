"""docs/tables.md: what every table and column is, from the schema."""

import itertools
from collections import Counter

from stepscope.results.schema import FLAG, NUMBER, OF_ROW, QUANTITIES, TABLES, TEXT, Column


def page() -> str:
    """docs/tables.md in Markdown: every table, quantity and column; what is one in several tables
    is told once."""
    tables = [list(table.columns.values()) for table in TABLES.values()]
    users = Counter(itertools.chain(*tables))
    shared = [each for each in users if users[each] > 1]
    parts = [_part("Columns of several tables", shared)]
    for name, table in TABLES.items():
        own = [each for each in table.columns.values() if users[each] == 1]
        parts.append(_part(f"`{name}`: {table.row}", own))
    parts.append(_part("Quantities of `series`", list(QUANTITIES.values())))
    return "\n".join([_INTRODUCTION, *parts])


def _part(title: str, columns: list[Column]) -> str:
    """A line for each column, or for several that stand together and mean alike."""
    lines = [f"## {title}"]
    for meaning, alike in itertools.groupby(columns, _meaning):
        lines.append(f"- {', '.join(map(_name, alike))}: {meaning}")
    return "\n".join([*lines, ""])


def _name(column: Column) -> str:
    """With its unit, as physicists write it: `time`/s."""
    unit = "`unit`" if column.unit == OF_ROW else column.unit
    ends = {TEXT: "", FLAG: " (flag)", NUMBER: f"/{unit}"}
    name = f"`{column.name}`{ends[column.kind]}"
    return f"**{name}**" if column.is_axis else name


def _meaning(column: Column) -> str:
    """What is told behind the name, the interval with it."""
    ends = f"; interval: `{column.low}` to `{column.high}`" if column.low else ""
    return column.meaning + ends


_SOURCE = "scripts/stepscope/results/schema.py"
_INTRODUCTION = f"""\
<!-- Made by `python scripts/aggregate.py --describe > docs/tables.md` from {_SOURCE}. -->
# The tables

`aggregate` writes `results/tables/*.csv` from the cells' records, samples and analyses: full
numbers, an empty field for no value. Units are SI, as in `time`/s; 1 is a count or a ratio,
`unit` the row's; without one it is text. **Axes** tell rows apart.
`stepscope.results.tables.Tables("results/tables").rows("series", quantity="time")` is a pandas
frame in which numbers are numbers and flags flags; tables of cells get the columns of their place,
options and mode by `cells`.
"""
