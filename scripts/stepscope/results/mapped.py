"""What a function says of the rows of a table, asked once for rows that are equal in the columns
that it is given."""

from collections.abc import Callable

import pandas as pd


def mapped(rows: pd.DataFrame, columns: list[str], value: Callable) -> pd.Series:
    """value(*row[columns]) for each row, with the rows' index."""
    keys = list(rows[columns].itertuples(index=False, name=None))
    known = {key: value(*key) for key in dict.fromkeys(keys)}
    return pd.Series([known[key] for key in keys], rows.index)
