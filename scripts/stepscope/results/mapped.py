"""What stands beside the rows of a table: said by a function of their cells, or by other rows."""

from collections.abc import Callable

import pandas as pd

from stepscope.results.cells import MeasuredCell


def mapped(
    rows: pd.DataFrame, cells: list[MeasuredCell], value: Callable, *columns: str
) -> pd.Series:
    """value(cell, *row[columns]) for each row, with the rows' index; asked once for rows that are
    equal in these columns."""
    by_name = {cell.name: cell for cell in cells}
    keys = list(rows[["cell", *columns]].itertuples(index=False, name=None))
    known = {key: value(by_name[key[0]], *key[1:]) for key in dict.fromkeys(keys)}
    return pd.Series([known[key] for key in keys], rows.index)


def beside(rows: pd.DataFrame, others: pd.DataFrame, by: list[str], column: str) -> pd.Series:
    """A column of the first of the others that has the same values in `by`, with the rows' index;
    NaN where there is none."""
    known = others.drop_duplicates(by).set_index(by)[column]
    return rows[by].join(known, on=by)[column]
