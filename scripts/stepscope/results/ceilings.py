"""What the machine reached at most: large matrix products and copies, beside the GPU's data
sheet."""

import pandas as pd
from pandas import DataFrame, Series

from . import data_sheets
from .cells import MeasuredCell, mapped, of_study
from .tables import where

RATES = ["burst", "sustained"]  # kinds of samples of ceilings, which are variants of their cell


def least_times(samples: DataFrame) -> Series:
    """Seconds of each ceiling's shortest operation, by cell and variant: `sustained`, and `burst`:
    at any time."""
    kept = where(samples, kind=RATES, warmup=False)
    least = kept.groupby(["cell", "kind"])["seconds"].min().unstack().reindex(columns=RATES)
    least = least.assign(burst=least.min(axis=1)).rename_axis(columns="variant")
    return Series(least.stack(), name="seconds").dropna()


Bursts = dict[tuple[str, str], tuple[float, str | None]]


def bursts(cells: list[MeasuredCell], least: Series) -> Bursts:
    """The most that large products reached, by machine and precision: FLOP/s, and on which card."""
    found = {}
    for cell in cells:
        seconds = least.get((cell.name, "burst"))
        if seconds and cell.spec["operation"] == "matmul":
            key = cell.place["machine"], cell.spec["precision"]
            found[key] = work_of(cell) / seconds, cell.hardware.get("gpu_uuid")
    return found


def work_of(cell: MeasuredCell) -> float:
    """FLOP of a product of two matrices (order, order), 2 n³; bytes that a copy reads and
    writes."""
    if cell.spec["operation"] == "matmul":
        return 2.0 * cell.spec["order"] ** 3
    return 2.0 * cell.spec["mebibytes"] * 2**20


def rows(found: DataFrame, cells: list[MeasuredCell], least: Series) -> DataFrame:
    """Series of rates: work over the least of the times, and beside them what the GPU's data sheet
    says. found: the series of times."""
    cells = of_study(cells, "ceilings")
    place = ["cell", "variant"]
    times = where(found, quantity="time")[[*place, "processes", "samples"]]
    rates = times.join(least, on=place, how="inner")
    rates["median"] = mapped(rates, cells, work_of) / rates.pop("seconds")
    none = {"variant": "datasheet", "processes": 0, "samples": 0}
    sheets = DataFrame({"cell": [cell.name for cell in cells], **none})
    sheets["median"] = mapped(sheets, cells, _sheet)
    made = pd.concat([rates, sheets.dropna(subset="median")], ignore_index=True)
    return made.assign(mode="", phase="", length=0, direction="", quantity="rate", status="ok")


def _sheet(cell: MeasuredCell) -> float:
    """FLOP/s or B/s of the data sheet; NaN for a GPU that has no row there."""
    gpu = cell.hardware.get("gpu")
    return data_sheets.rate(gpu, cell.spec["operation"], cell.spec["precision"])
