"""sums.csv, dtypes.csv and forced.csv: what the probes of formats of numbers found, from their
records."""

from collections.abc import Iterator

from stepscope.results.cells import MeasuredCell
from stepscope.results.schema import TABLES


def sums(cells: list[MeasuredCell]) -> list[dict]:
    """A row for each way to add up."""
    return [
        {name: row.get(name) for name in TABLES["sums"].names}
        for row in _rows(cells, "accumulation")
    ]


def forced(cells: list[MeasuredCell]) -> list[dict]:
    """A row for each operation, input and format."""
    return [
        {name: row.get(name) for name in TABLES["forced"].names} for row in _rows(cells, "forced")
    ]


def dtypes(cells: list[MeasuredCell]) -> list[dict]:
    """A row for each module under autocast, and for each operation that was run alone."""
    found = []
    for model, part in (("toy", "toy"), ("own", "model")):
        for row in _rows(cells, part):
            if row.get("status", "ok") == "ok":
                named = {"model": model, "part": row["role"], "operator": row["kind"]}
                found.append(_key(row) | named | {name: row.get(name) for name in _TYPES})
    for row in _rows(cells, "operators"):
        if row.get("operator"):
            types = {
                "operator": row["operator"],
                "input": row["input_dtypes"],
                "output": row["output_dtype"],
            }
            found.append(_key(row) | {"model": row["operation"], "part": row["given"]} | types)
    return found


_TYPES = ("parameter", "input", "output", "output_gradient", "parameter_gradient")


def _rows(cells: list[MeasuredCell], part: str) -> Iterator[dict]:
    for cell in cells:
        for row in cell.summary.get("tables", {}).get(part, []):
            yield {"machine": cell.place["machine"], "cell": cell.name} | row


def _key(row: dict) -> dict:
    return {name: row[name] for name in ("machine", "cell", "autocast")}
