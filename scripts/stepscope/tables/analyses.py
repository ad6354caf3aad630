"""Tables of a study whose cells are analysed by a job of their own: all cells' tables put together."""

import csv
import io
from pathlib import Path

from stepscope.tables.cells import CellResult
from stepscope.tables.training import KEY
from stepscope.tables.writing import write_whole

Columns = dict[str, tuple[str, ...] | list[str]]  # table name -> its columns
Rows = list[list[str]]


def read_analysis(cell: CellResult, columns: Columns, made_of: str) -> tuple[dict[str, Rows], str]:
    """(table name -> its rows, why the analysis cannot be used); no rows of a cell that was not measured.

    made_of: what it is an analysis of, and its key in the record's summary: "trace".
    """
    if cell.status != "measured":
        return {}, ""
    if not isinstance(cell.record["summary"].get(made_of), dict):
        return {}, f"record.json says nothing of the {made_of} (edited by hand); measure the cell again"
    if not (cell.folder / "analysis").is_dir():
        return {}, f"measured, but the {made_of} is not analysed yet"
    tables = {}
    for name, expected in columns.items():
        try:
            tables[name] = _rows(cell.folder / "analysis" / f"{name}.csv", list(expected))
        except (OSError, ValueError, csv.Error):
            again = f"delete results/{cell.name}/analysis and run again"
            return {}, f"analysis/{name}.csv is missing, damaged or of another version; {again}"
    return tables, ""


def write_together(path: Path, columns: list[str], keys: list[list], tables: list[Rows]) -> None:
    """Write one table of all cells, each row after its cell's key (see KEY); whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*KEY, *columns])
    for key, rows in zip(keys, tables, strict=True):
        writer.writerows([*key, *row] for row in rows)
    write_whole({path: [text.getvalue()]})


def _rows(path: Path, columns: list[str]) -> Rows:
    """The rows of a CSV file. Raises ValueError if it has other columns, or ends too early."""
    text = path.read_text(encoding="utf-8")
    header, *rows = [*csv.reader(io.StringIO(text, newline=""), strict=True)] or [[]]
    if header != columns or not text.endswith("\n") or any(len(row) != len(columns) for row in rows):
        raise ValueError
    return rows
