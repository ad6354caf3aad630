"""Writing a folder of tables, all of them or none."""

from pathlib import Path

import pandas as pd

from stepscope.files import replacing


def write_tables(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    """Write NAME.csv for each table that has rows. Raises OSError where that fails.

    A file of a table that has no rows now is removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    full = {name: table for name, table in tables.items() if len(table)}
    with replacing([folder / f"{name}.csv" for name in full]) as parts:
        for table, part in zip(full.values(), parts, strict=True):
            table.to_csv(part, index=False, float_format="%.9g", lineterminator="\n")
    for name in tables.keys() - full.keys():
        (folder / f"{name}.csv").unlink(missing_ok=True)
