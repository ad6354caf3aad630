"""Quantities from the tidy tables of one machine: what a facts module asks."""

import functools
import math
from collections.abc import Callable
from pathlib import Path

from stepscope.report.kit.quantity import Maybe, Quantity
from stepscope.results.tables import Tables

TIMED_ALONE = ("host_free_time", "busy_time")  # what the host cannot change


def once(made: Callable) -> Callable:
    """What a function makes of the data alone is made once."""

    @functools.wraps(made)
    def kept(data: "Data", *others: object) -> object:
        name = f"{made.__module__}.{made.__name__}"
        if name not in data.made:
            data.made[name] = made(data, *others)
        return data.made[name]

    return kept


class Data(Tables):
    """The tables of one machine, with quantities instead of numbers."""

    def __init__(self, folder: Path, machine: str | None = None):
        super().__init__(folder, machine)
        self.made: dict[str, object] = {}

    def dicts(self, name: str, **where: object) -> list[dict]:
        """The rows of a table, as dictionaries."""
        return self.rows(name, **where).to_dict("records")

    def series(self, **where: object) -> list[dict]:
        """The rows of series.csv of what was measured."""
        return self.dicts("series", status="ok", **where)

    def measured(self, quantity: str, **where: object) -> Maybe:
        """The first such series as a quantity, with its interval between processes."""
        rows = self.series(quantity=quantity, **where)
        return of_series(rows[0]) if rows else None


def of_series(row: dict) -> Quantity | None:
    """A row of series.csv: its median, interval and cell. In doubt is a time that fewer than two
    processes measured."""
    if math.isnan(row["median"]):
        return None
    ends = (row["low"], row["high"])
    known = not any(math.isnan(end) for end in ends)
    is_time = row["quantity"] == "time"
    unit = {"1": "count", "token/s": "token/s"}.get(row["unit"], row["unit"])
    unit = "share" if row["quantity"] in ("share_of_ceiling", "mfu") else unit
    return Quantity(
        row["median"],
        unit,
        *(ends if known else (None, None)),
        is_time and not known,
        (row["cell"],),
    )


def of_ratio(row: dict) -> Quantity:
    """A row of comparisons.csv: times as fast as `a`, with its interval; in doubt without one."""
    known = not any(math.isnan(row[end]) for end in ("low", "high"))
    ends = (row["low"], row["high"]) if known else (None, None)
    return Quantity(row["ratio"], "1", *ends, not known, (row["cell"],))


def number(row: dict, column: str, unit: str, factor: float = 1.0) -> Maybe:
    """A number of a row as a quantity; missing where the row or the number is."""
    value = row.get(column)
    if value is None or not isinstance(value, (int, float)) or math.isnan(value):
        return None
    return Quantity(float(value) * factor, unit, cells=(row["cell"],) if row.get("cell") else ())


def total(rows: list[dict], column: str, unit: str) -> Maybe:
    """The sum of a column over rows; missing without rows."""
    values = [row[column] for row in rows if not math.isnan(row[column])]
    return Quantity(math.fsum(values), unit, cells=(rows[0]["cell"],)) if values else None


def machines(folder: Path) -> list[str]:
    """Labels of the machines, GPUs first, then by how much their memory holds."""
    cells = Tables(folder)["cells"]
    best = cells.groupby("machine", sort=False)[["device", "memory"]].max()
    return sorted(
        best.index, key=lambda name: (best.device[name] != "cuda", -_or_zero(best.memory[name]))
    )


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value
