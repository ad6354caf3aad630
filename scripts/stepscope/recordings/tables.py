"""Writing a folder of tables, all of them or none."""

from pathlib import Path

import pandas as pd

from stepscope.files import replacing


def write_tables(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    """Write NAME.csv for each table; a table without rows is its header. Raises OSError where that fails."""
    with replacing([folder / f"{name}.csv" for name in tables]) as parts:
        for table, part in zip(tables.values(), parts, strict=True):
            table.to_csv(part, index=False, float_format="%.9g", lineterminator="\n")
