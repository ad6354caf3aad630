"""What a function says of the rows of a table, asked once for rows that are equal in the columns
that it is given."""

from collections.abc import Callable

import pandas as pd

from stepscope.results.cells import MeasuredCell


def mapped(
    rows: pd.DataFrame, cells: list[MeasuredCell], value: Callable, *columns: str
) -> pd.Series:
    """value(cell, *row[columns]) for each row, with the rows' index."""
    by_name = {cell.name: cell for cell in cells}
    keys = list(rows[["cell", *columns]].itertuples(index=False, name=None))
    known = {key: value(by_name[key[0]], *key[1:]) for key in dict.fromkeys(keys)}
    return pd.Series([known[key] for key in keys], rows.index)
