"""How a table is written: by its schema, whole or not at all."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from stepscope.files import write_whole
from stepscope.tables.cells import CellResult
from stepscope.tables.schema import Table


def write_study(
    folder: Path, tables: tuple[Table, Table], rows: Sequence[Mapping], cells: Sequence[CellResult], keys: list[list]
) -> None:
    """Write a study's table and that of its samples, both or neither; the key stands before each of a cell's samples.

    Raises ValueError for a row with a key that the table does not declare.
    """
    table, samples = tables
    write_whole(
        {
            folder / f"{table.name}.csv": [as_csv(table, rows)],
            folder / f"{samples.name}.csv": _sample_lines(samples, cells, keys),
        }
    )


def write_table(folder: Path, table: Table, rows: Iterable[Mapping]) -> None:
    """Write one more table of a study. Raises ValueError for a row with a key that the table does not declare."""
    write_whole({folder / f"{table.name}.csv": [as_csv(table, rows)]})


def write_analyses(folder: Path, table: Table, keys: list[list], analyses: list[list[list]]) -> None:
    """Write one table of all cells' analyses, each row after its cell's key.

    Raises ValueError for a row that has not as many values as the table has columns.
    """
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(table.columns)
    for key, rows in zip(keys, analyses, strict=True):
        for row in rows:
            if len(key) + len(row) != len(table.columns):
                raise ValueError(f"{table.name}: {len(row)} values after the key; expected {len(table.columns)} in all")
            writer.writerow([*key, *row])
    write_whole({folder / f"{table.name}.csv": [lines.getvalue()]})


def as_csv(table: Table, rows: Iterable[Mapping]) -> str:
    """The table as CSV: all of its columns in their order; numbers in full, what a row does not have stays empty."""
    lines = io.StringIO()
    writer = csv.DictWriter(lines, table.columns, lineterminator="\n", restval="")
    writer.writeheader()
    for row in rows:
        if unknown := [name for name in row if name not in table.by_name]:
            raise ValueError(f"{table.name}: no field is declared for {', '.join(unknown)}")
        writer.writerow(row)
    return lines.getvalue()


def _sample_lines(table: Table, cells: Sequence[CellResult], keys: list[list]) -> Iterator[str]:
    """The lines of all cells' samples.csv, each after its cell's key; as they are, since there may be millions."""
    yield ",".join(table.columns) + "\n"
    for cell, key in zip(cells, keys, strict=True):
        start = io.StringIO()
        csv.writer(start, lineterminator="").writerow(key)
        own = table.columns[len(key) :]
        is_current = not cell.samples or cell.samples[0] == ",".join(own)
        lines = cell.samples[1:] if is_current else _of_older_version(cell.samples, own)
        yield from (f"{start.getvalue()},{line}\n" for line in lines)


def _of_older_version(lines: Sequence[str], columns: list[str]) -> Iterator[str]:
    """Samples with other columns than today's: what they do not say stays empty, and all are of one process."""
    for row in csv.DictReader(lines):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow({"process": 1, **row}.get(name, "") for name in columns)
        yield line.getvalue()
