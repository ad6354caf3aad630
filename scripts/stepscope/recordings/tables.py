"""Writing a folder of tables, all of them or none."""

import re
from pathlib import Path

import pandas as pd

from stepscope.files import replacing

_FORMULA = re.compile(r"^[=+\-@\t\r]")  # what a spreadsheet runs when it opens the file


def write_tables(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    """Write NAME.csv for each table that has rows. Raises OSError where that fails.

    A file of a table that has no rows now is removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    full = {name: table for name, table in tables.items() if len(table)}
    with replacing([folder / f"{name}.csv" for name in full]) as parts:
        for table, part in zip(full.values(), parts, strict=True):
            quoted = table.apply(_quoted)
            # A name may hold what UTF-8 does not: half of a pair, a byte of a path.
            quoted.to_csv(
                part, index=False, float_format="%.9g", lineterminator="\n", errors="replace"
            )
    for name in tables.keys() - full.keys():
        (folder / f"{name}.csv").unlink(missing_ok=True)


def _quoted(column: pd.Series) -> pd.Series:
    """A column of a table in which no text is a spreadsheet's formula."""
    return column if pd.api.types.is_numeric_dtype(column) else column.map(_harmless)


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
