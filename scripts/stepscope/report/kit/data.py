"""Quantities from the tidy tables of one machine: what a facts module asks."""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from stepscope.results.schema import NUMBER, TABLES, TEXT
from stepscope.results.tables import Tables

from .named import Name
from .quantity import Maybe, Quantity, within

# quantities that are printed as percent
SHARES = ("share_of_ceiling", "mfu", "mfu_causal", "mfu_narrow")
Row = dict[Any, Any]  # of a table: column → text, number or flag, as the schema says
Made = TypeVar("Made")


def once(made: Callable[["Data"], Made]) -> Callable[["Data"], Made]:
    """What a function makes of the data alone is made once."""

    @functools.wraps(made)
    def kept(data: "Data") -> Made:
        name = f"{made.__module__}.{made.__name__}"
        if name not in data.made:
            data.made[name] = made(data)
        return data.made[name]

    return kept


class Data(Tables):
    """The tables of one machine, with quantities instead of numbers."""

    def __init__(self, folder: Path, machine: str | None = None, own_steps: bool | None = None):
        super().__init__(folder, machine, own_steps)
        self.made: dict[str, Any] = {}  # by `once`

    def seen(self, own_steps: bool | None) -> Self:
        """As of Tables; what is made of one is none of the other."""
        other = super().seen(own_steps)
        other.made = {}
        return other

    def dicts(self, name: str, **where: object) -> list[Row]:
        """The rows of a table, as dictionaries, which name it as `table`."""
        rows = self.rows(name, **where).to_dict("records")
        return [row | {"table": name} for row in rows]

    def series(self, **where: object) -> list[Row]:
        """The rows of series.csv of what was measured."""
        return self.dicts("series", status="ok", **where)

    def measured(self, quantity: str, **where: object) -> Maybe:
        """The first such series as a quantity, with its interval between processes."""
        rows = self.series(quantity=quantity, **where)
        return of_series(rows[0]) if rows else None


def of_series(row: Row) -> Maybe:
    """A row of series.csv: its median, interval and cell. In doubt is a time that fewer than two
    processes measured, and the share of a ceiling that another card reached."""
    if math.isnan(row["median"]):
        return None
    name = row["quantity"]
    unit = row["unit"]
    if unit == "1":
        unit = "share" if name in SHARES else "count"
    measured = Quantity(row["median"], unit, cells=(row["cell"],), of=_of(row, "median"))
    measured = within(measured, row["low"], row["high"])
    is_open = name == "time" and not measured.has_interval
    return replace(measured, doubt=is_open or bool(row.get("across_cards")))


def of_ratio(row: Row) -> Maybe:
    """A row of comparisons.csv: times as fast as `a`, with its interval; in doubt without one. None
    of no row."""
    if not row:
        return None
    measured = Quantity(row["ratio"], "1", cells=(row["cell"],), of=_of(row, "ratio"))
    ratio = within(measured, row["low"], row["high"])
    return replace(ratio, doubt=not ratio.has_interval)


def number(row: Row, column: str, unit: str) -> Maybe:
    """A number of a row as a quantity; missing where the row or the number is."""
    value = row.get(column)
    if not isinstance(value, int | float) or math.isnan(value):
        return None
    cells = (row["cell"],) if row.get("cell") else ()
    return Quantity(float(value), unit, cells=cells, of=_of(row, column))


def _of(row: Row, column: str) -> tuple[str, ...]:
    """What the column of a row is: of series.csv its quantity."""
    table = row.get("table", "")
    if table == "series":
        return (f"series.{row['quantity']}",)
    return (f"{table}.{column}",) if table else ()


def shown(row: Row, **units: str) -> Row:
    """A row as pages show it, with the columns of its table and of its cell.

    Numbers are quantities, in the units of the schema unless others are named, and missing where
    they are not known; text is that of a record, and missing where it is empty.
    """
    made: Row = {}
    columns = TABLES["cells"].columns | TABLES[row["table"]].columns
    for name, column in columns.items():
        if column.kind == NUMBER:
            unit = units.get(name) or column.printed or column.unit
            made[name] = number(row, name, unit)
        elif column.kind == TEXT:
            made[name] = Name(row[name]) if row.get(name) else None
    return made


def total(rows: list[Row], column: str, unit: str) -> Maybe:
    """The sum of a column over rows; missing without rows."""
    values = [row[column] for row in rows if not math.isnan(row[column])]
    if not values:
        return None
    first = rows[0]
    cells = (first["cell"],)
    return Quantity(math.fsum(values), unit, cells=cells, of=_of(first, column))


def grouped(rows: Iterable[Row], *columns: str) -> dict[tuple, list[Row]]:
    """Rows by what they have in these columns, in the order in which that first appears."""
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        key = tuple(row[column] for column in columns)
        groups.setdefault(key, []).append(row)
    return groups


def machines(folder: Path) -> list[str]:
    """Labels of the machines, GPUs first, then by how much their memory holds."""
    of_machine = grouped(Tables(folder)["cells"].to_dict("records"), "machine")

    def order(label: str) -> tuple[bool, float]:
        rows = of_machine[(label,)]
        has_gpu = any(row["device"] == "cuda" for row in rows)
        memories = [row["memory"] for row in rows if not math.isnan(row["memory"])]
        return not has_gpu, -max(memories, default=0.0)

    return sorted((label for (label,) in of_machine), key=order)
