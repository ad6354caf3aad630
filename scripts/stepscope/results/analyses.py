"""The tables that analyses of traces and snapshots leave beside a cell's record, put together for
all cells."""

import pandas as pd
from pandas import DataFrame

from stepscope.results import tables
from stepscope.results.cells import MeasuredCell
from stepscope.results.schema import TABLES


def read(cells: list[MeasuredCell]) -> tuple[dict[str, DataFrame], dict[str, str]]:
    """(table: its rows of all cells, as the schema has them, cells whose analysis is damaged: why).

    A table that no analysis wrote is there without rows; files that are no tables are for readers.
    """
    parts = {name: [tables.typed(DataFrame(), name)] for name in TABLES}
    damaged = {}
    for cell in cells:
        for path in cell.folder.glob("analysis/*.csv"):
            try:
                if path.stem in parts:
                    rows = tables.read(path, path.stem)
                    parts[path.stem].append(rows.assign(**cell.key))
            except (OSError, ValueError) as error:
                why = f"analysis/{path.name} is damaged: {error}; delete that folder and run again"
                damaged[cell.name] = why
    return {name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()}, damaged
