"""The command, code and raw samples of each cell, for every study."""

import pandas as pd

from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table

MOST_IN_MARKDOWN = 30  # cells


def commands_table(frame: pd.DataFrame, study: str) -> Table | None:
    """A row a cell: what a person types to measure it, and where its files are.

    For the page alone where there are more cells than MOST_IN_MARKDOWN: of Markdown GitHub shows no more than 512 KiB.
    """
    if frame.empty:
        return None
    columns = [Column(name, number=False) for name in ("cell", "command", "code", "commit", "samples", "log")]
    rows = [_row(row) for row in frame.to_dict("records")]
    caption = f"The command that measured each cell of {study}, the digest of the code that ran, its samples and log."
    page_only = len(rows) > MOST_IN_MARKDOWN
    return Table(f"commands-{study}", caption, columns, rows, folded=True, page_only=page_only)


def _row(row: dict) -> list[Cell]:
    measured = row.get("status") not in ("missing", "failed")
    cell, command = row["cell"] or "", row.get("command")
    return [
        Cell(cell),
        Cell(command, code=True) if command else Cell("–"),
        Cell(str(row["code"])[:12], code=True) if row.get("code") else Cell("–"),
        Cell(formatting.commit(row["git_commit"]), code=True) if row.get("git_commit") else Cell("–"),
        Cell("samples.csv", link=f"{cell}/samples.csv") if measured else Cell("–"),
        Cell("log", link=row["log"]) if row.get("log") else Cell("–"),
    ]
