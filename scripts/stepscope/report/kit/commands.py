"""The command, code and raw samples of each cell, for every study."""

import pandas as pd

from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell


def commands_table(frame: pd.DataFrame, study: str) -> Table | None:
    """A row a cell: what a person types to measure it, and where its files are."""
    rows = frame.to_dict("records")
    caption = f"The command that measured each cell of {study}, the digest of the code that ran, its samples and log."
    return table.build(f"commands-{study}", caption, _COLUMNS, rows, folded=True)


def _code(text: object) -> TableCell:
    return TableCell(str(text), code=True) if text else table.NOTHING


def _samples(row: dict) -> TableCell:
    if row.get("status") in ("missing", "failed"):
        return table.NOTHING
    return TableCell("samples.csv", link=f"{row['cell'] or ''}/samples.csv")


_COLUMNS = [
    Column("cell", number=False, value=lambda row: TableCell(row["cell"] or "")),
    Column("command", number=False, value=lambda row: _code(row.get("command"))),
    Column("code", number=False, value=lambda row: _code(row.get("code") and str(row["code"])[:12])),
    Column("code is today's", number=False, value=lambda row: row.get("is_current"), optional=True),
    Column(
        "commit",
        number=False,
        value=lambda row: _code(row.get("git_commit") and formatting.commit(row["git_commit"])),
    ),
    Column("samples", number=False, value=_samples),
    Column("log", number=False, value=lambda row: TableCell("log", link=row["log"]) if row.get("log") else None),
]
