"""sums.csv, dtypes.csv and forced.csv: what the probes of formats of numbers found, from their
records."""

from collections.abc import Iterator

from pandas import DataFrame

from stepscope.results.cells import MeasuredCell, told
from stepscope.results.schema import TABLES


def tables(cells: list[MeasuredCell]) -> dict[str, DataFrame]:
    """All of them, with the columns of the schema."""
    found = {
        "sums": told(cells, "tables", "accumulation"),
        "dtypes": _dtypes(cells),
        "forced": told(cells, "tables", "forced"),
    }
    return {name: DataFrame(rows, columns=TABLES[name].names) for name, rows in found.items()}


def _dtypes(cells: list[MeasuredCell]) -> Iterator[dict]:
    """A row for each module under autocast, and for each operation that was run alone."""
    for model, part in (("toy", "toy"), ("own", "model")):
        for row in told(cells, "tables", part):
            if row.get("status", "ok") == "ok":
                yield row | {"model": model, "part": row["role"], "operator": row["kind"]}
    for row in told(cells, "tables", "operators"):
        if row.get("operator"):
            types = {"input": row["input_dtypes"], "output": row["output_dtype"]}
            yield row | {"model": row["operation"], "part": row["given"]} | types
