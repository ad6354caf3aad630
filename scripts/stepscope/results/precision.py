"""sums.csv, dtypes.csv and forced.csv: what the probes of formats of numbers found, from their
records."""

from pandas import DataFrame

from stepscope.results.cells import MeasuredCell, told
from stepscope.results.schema import TABLES


def tables(cells: list[MeasuredCell]) -> dict[str, DataFrame]:
    """All of them, with the columns of the schema."""
    found = {
        "sums": told(cells, "tables", "accumulation"),
        "dtypes": told(cells, "tables", "toy"),
        "forced": told(cells, "tables", "forced"),
    }
    return {name: DataFrame(rows, columns=TABLES[name].names) for name, rows in found.items()}
