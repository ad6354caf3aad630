"""What the machine reached at most: large matrix products and copies, beside the GPU's data
sheet."""

from typing import NamedTuple

import pandas as pd

from stepscope.results import data_sheets
from stepscope.results.cells import MeasuredCell

Least = dict[str, dict[str, float]]  # cell: seconds of its shortest operation, by variant


def least_times(samples: pd.DataFrame) -> Least:
    """Seconds of each ceiling's shortest operation: `sustained`, and `burst`: at any time."""
    is_rate = samples["kind"].isin(["burst", "sustained"])
    kept = samples[is_rate & ~samples["warmup"].astype(bool)]
    by = kept.astype({"cell": "str", "kind": "str"}).groupby(["cell", "kind"])["seconds"]
    found: Least = {}
    for row in by.min().reset_index().to_dict("records"):
        found.setdefault(row["cell"], {})[row["kind"]] = row["seconds"]
    return {cell: kinds | {"burst": min(kinds.values())} for cell, kinds in found.items()}


class Burst(NamedTuple):
    """The most that large products reached: FLOP/s, and on which card."""

    rate: float | None
    card: str | None


UNKNOWN = Burst(None, None)
Bursts = dict[tuple[str, str], Burst]  # by machine and precision


def bursts(cells: list[MeasuredCell], least: Least) -> Bursts:
    """Those that were measured."""
    found = {}
    for cell in of_ceilings(cells):
        seconds = least.get(cell.name, {}).get("burst")
        if seconds and cell.spec["operation"] == "matmul":
            key = cell.place["machine"], cell.spec["precision"]
            found[key] = Burst(work_of(cell) / seconds, cell.card)
    return found


def of_ceilings(cells: list[MeasuredCell]) -> list[MeasuredCell]:
    """The cells that measure one."""
    return [cell for cell in cells if cell.place["study"] == "ceilings"]


def work_of(cell: MeasuredCell) -> float:
    """FLOP of a product of two matrices (order, order), 2 n³; bytes that a copy reads and
    writes."""
    if cell.spec["operation"] == "matmul":
        return 2.0 * cell.spec["order"] ** 3
    return 2.0 * cell.spec["mebibytes"] * 2**20


def rows(found: pd.DataFrame, cells: list[MeasuredCell], least: Least) -> pd.DataFrame:
    """Series of rates: work over the least of the times, and beside them what the GPU's data sheet
    says. found: the series of times."""
    made = []
    for cell in of_ceilings(cells):
        own = found[found["cell"] == cell.name]
        for variant, seconds in least.get(cell.name, {}).items():
            counted = own[own["variant"] == variant][["processes", "samples"]].max().to_dict()
            made.append(_row(cell, variant, work_of(cell) / seconds) | counted)
        sheet = data_sheets.rate(cell.gpu, cell.spec["operation"], cell.spec["precision"])
        if sheet:
            none = {"processes": 0, "samples": 0}
            made.append(_row(cell, "datasheet", sheet) | none)
    return pd.DataFrame(made)


def _row(cell: MeasuredCell, variant: str, rate: float) -> dict:
    return {
        "cell": cell.name,
        "variant": variant,
        "mode": "",
        "phase": "",
        "length": 0,
        "direction": "",
        "quantity": "rate",
        "unit": "FLOP/s" if cell.spec["operation"] == "matmul" else "B/s",
        "status": "ok",
        "median": rate,
    }
