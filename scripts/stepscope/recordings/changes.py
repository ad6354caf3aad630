"""Two recordings beside each other: the rows that changed most."""

import numpy as np
import pandas as pd

MOST_ROWS = 200  # of a kind


def largest(table: pd.DataFrame, kinds: list[str]) -> pd.DataFrame:
    """The rows in the order of their `kind`, of each those with the largest `difference` first."""
    kind = table["kind"].map(kinds.index)
    order = np.lexsort([-table["difference"].abs(), kind])
    return table.iloc[order].groupby("kind", sort=False).head(MOST_ROWS)
