"""The profiled cells, their analyses, and the unprofiled time of the same point."""

from dataclasses import dataclass

import pandas as pd

from stepscope.report.data.unprofiled import mode, same_point
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column
from stepscope.report.kit.order import with_order
from stepscope.report.kit.table import marks as marks_of_measured
from stepscope.tables.reader import Tables

PHASES = ("inference", "forward", "loss", "backward", "optimizer", "step")


@dataclass(frozen=True)
class Words:
    """What an operation is called: a kernel of a GPU, or on a CPU an operator of PyTorch."""

    operation: str
    device: str
    time: str

    @property
    def operations(self) -> str:
        return f"{self.operation}s"


GPU = Words("kernel", "GPU", "GPU time")
HOST = Words("operator", "operators", "time in operators")


class Profile:
    """The profile study's tables, a cell's rows at a time, and the timing and ceilings tables beside them."""

    def __init__(self, tables: Tables):
        self.cells = with_order(tables["profile"])
        self.timing = with_order(tables["timing"])
        self.ceilings = tables["ceilings"]
        self._tables = tables
        self._parts: dict[str, dict[str, pd.DataFrame]] = {}
        self._records: dict[tuple[str, str], list[dict]] = {}
        self._unprofiled: dict[str, dict] = {}
        self._profiled: list[dict] | None = None

    def rows(self, name: str, cell: str) -> pd.DataFrame:
        """A cell's rows of profile_<name>.csv; empty where there are none."""
        if name not in self._parts:
            frame = self._tables[f"profile_{name}"]
            parts = frame.groupby("cell", sort=False) if len(frame) else ()
            self._parts[name] = {key: part.reset_index(drop=True) for key, part in parts}
        return self._parts[name].get(cell, pd.DataFrame())

    def row(self, name: str, cell: str, **where) -> dict:
        """The first row of a cell's table with these values; empty where there is none."""
        if (name, cell) not in self._records:
            self._records[name, cell] = self.rows(name, cell).to_dict("records")
        found = (row for row in self._records[name, cell] if all(row.get(key) == where[key] for key in where))
        return next(found, {})

    def profiled(self) -> list[dict]:
        """The cells that have an analysis, in their order."""
        if self._profiled is None:
            rows = self.cells.to_dict("records")
            self._profiled = [row for row in rows if len(self.rows("phases", row["cell"]))]
        return self._profiled

    def check(self, cell: str, quantity: str) -> str | None:
        """A value of the cell's checks as text."""
        return self.row("checks", cell, quantity=quantity).get("value")

    def number_of(self, cell: str, quantity: str) -> float:
        """A number of the cell's checks; not a number where there is none."""
        return float(pd.to_numeric(self.check(cell, quantity), errors="coerce"))

    def words(self, row: dict) -> Words:
        """What the operations of a cell are called."""
        told = self.check(row["cell"], "device_is_host")
        return HOST if told == "True" or (told is None and row.get("device") == "cpu") else GPU

    def words_of_all(self) -> Words:
        """What to call the operations of all cells: operators only if no cell ran on a GPU."""
        rows = self.profiled()
        return HOST if rows and all(self.words(row) is HOST for row in rows) else GPU

    def unprofiled(self, row: dict) -> dict:
        """The timing study's row of the same point: the same run if there is one; empty where it was not measured."""
        if row["cell"] not in self._unprofiled:
            self._unprofiled[row["cell"]] = same_point(self.timing, row)
        return self._unprofiled[row["cell"]]


def marks(row: dict) -> tuple[str, ...]:
    """The marks of a whole cell, what it could not do included."""
    lost = (row["status"],) if row.get("status") in ("oom", "unsupported") else ()
    return lost + marks_of_measured(row)


def title(row: dict, whole: pd.DataFrame) -> str:
    """`xl, context 512, bf16, inference`: a cell's point, with what varies among all cells."""
    context = f"context {row['context']:,.0f}" if formatting.known(row["context"]) else ""
    parts = [str(row["size"] or "?"), context, str(row["precision"] or "?")]
    parts += [str(row["mode"])] if mode(row) != "step" else []
    parts += [f"batch {row['batch']:,.0f}"] if _varies(whole, "batch") and formatting.known(row["batch"]) else []
    parts += [row["options"]] if row["options"] else []
    parts += [f"run {row['repeat']}"] if row["repeat"] > 1 else []
    parts += [f"on {row['hardware']}"] if _varies(whole, "hardware") else []
    return ", ".join(part for part in parts if part)


def _varies(whole: pd.DataFrame, name: str) -> bool:
    return name in whole and whole[name].nunique() > 1


def leading(whole: pd.DataFrame) -> list[Column]:
    """The columns that name a cell: size, context and precision, and what varies among all cells."""
    columns = [Column("size", number=False), Column("context", "tokens"), Column("precision", number=False)]
    return columns + [Column(name, number=name in ("batch", "repeat")) for name in _extra(whole)]


def _extra(whole: pd.DataFrame) -> list[str]:
    return [name for name in ("mode", "batch", "options", "repeat", "hardware") if _varies(whole, name)]


def lead(row: dict, whole: pd.DataFrame) -> list[Cell]:
    """A cell's values in the leading columns."""
    cells = [
        Cell(str(row["size"] or "?"), badges=marks(row)),
        count(row["context"]),
        Cell(str(row["precision"] or "?")),
    ]
    return cells + [
        count(row[name]) if name in ("batch", "repeat") else Cell(str(row[name] or "–")) for name in _extra(whole)
    ]


def number(value: object, digits: int = 3, below: str = "", badges: tuple[str, ...] = ()) -> Cell:
    """A number with so many significant digits; a dash where there is none."""
    if not formatting.known(value):
        return Cell("–")
    return Cell(formatting.significant(value, digits) if value else "0", below, float(value), badges)


def count(value: object, below: str = "") -> Cell:
    """A count, with a decimal where the steps differ."""
    if not formatting.known(value):
        return Cell("–")
    return Cell(count_text(value), below, float(value))


def count_text(value: float) -> str:
    """`1,234`, or `1,234.3` for a mean of counts."""
    return formatting.fixed(value, 0 if abs(value - round(value)) < 0.005 else 1)


def share(value: object, below: str = "") -> Cell:
    """A share of one in percent, without the sign, which stands in the heading."""
    if not formatting.known(value):
        return Cell("–")
    return Cell(share_text(value), below, float(value))


def share_text(value: float) -> str:
    """`71.7`, `0.04`: percent with a decimal, small ones with two."""
    return formatting.fixed(100 * value, 1 if value == 0 or abs(value) >= 0.001 else 2)


def shortened(text: object, most: int) -> str:
    """A long name without its middle, whose ends tell more."""
    text = str(text or "")
    end = most // 3
    return text if len(text) <= most else f"{text[: most - end - 1].rstrip()}…{text[-end:].lstrip()}"


def named(text: object, most: int = 60, below: str = "") -> Cell:
    """A name from a trace, shortened if need be, the whole as the cell's title."""
    text = str(text or "–")
    return Cell(shortened(text, most), below, title=text if len(text) > most else "")
