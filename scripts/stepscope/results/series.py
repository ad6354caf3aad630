"""series.csv: every measured quantity of every variant, with its interval between processes, and
what follows."""

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from . import agreement, alone, ceilings, derived, memory, statistics
from .alone import STEP, WHOLE
from .ceilings import RATES
from .cells import (
    MeasuredCell,
    beside,
    mapped,
    of_study,
    places,
    precision_of,
    told,
)
from .records import TEXT
from .schema import QUANTITIES
from .tables import where

QUANTITY_OF = {  # kind of sample: the quantity that its seconds are
    "free": "time",
    "phased": "time",
    "host-free": alone.HOST_FREE,
    "busy": alone.BUSY,
    **dict.fromkeys(RATES, "time"),
}
UNITS = {name: each.unit for name, each in QUANTITIES.items()}
KEY = [*STEP, "quantity"]
# Within which series lend each other their spread: a study on a machine, and what limits alike.
LENT = ["machine", "study", "limited"]
COLUMNS = [*KEY, *derived.NUMBERS, "processes", "samples", "status", "limits"]
PEAKS = ("peak_asked", "peak_allocated", "peak_reserved")


def of(cells: list[MeasuredCell], samples: DataFrame) -> DataFrame:
    """All rows, in the order of the cells. samples: by cells.read()."""
    measured = [cell for cell in cells if cell.record]
    processes = [of_samples(samples), of_values(measured)]
    found = summarised(pd.concat(processes, ignore_index=True), measured)
    found = pd.concat([found, alone.times(found)], ignore_index=True)
    least = ceilings.least_times(samples)
    parts = [
        *derived.rates(found, measured, ceilings.bursts(measured, least)),
        derived.energy_of_tokens(found, measured),
        ceilings.rows(found, measured, least),
        # What failed here may have been measured there.
        failures(measured),
    ]
    every = pd.concat([found, *filter(len, parts)], ignore_index=True).drop_duplicates(KEY)
    return placed(every, cells)


def of_samples(samples: DataFrame) -> DataFrame:
    """What each process gave, warm-up left out: the median of its samples, with their mean,
    variance and number; of the GPU's clock what was read before free whole steps."""
    kept = where(samples, warmup=False)
    # A phased step is only known by its phases: a whole one is timed free.
    is_sum_of_phases = (kept["kind"] == "phased") & (kept["phase"] == kept["mode"].map(WHOLE))
    times = kept[~is_sum_of_phases].rename(columns={"seconds": "value"})
    times = times.assign(quantity=times["kind"].map(QUANTITY_OF))
    clocks = where(kept, kind="free", mode="step").assign(quantity="sm_clock")
    clocks = clocks.rename(columns={"sm_clock_mhz": "value"}).dropna(subset="value")
    both = pd.concat([times, clocks], ignore_index=True)
    by = both.groupby([*KEY, "process"], sort=False)["value"]
    found = by.agg(value="median", mean="mean", var="var", samples="count").reset_index()
    # A clock is read, its deviation is none of the steps'.
    return found.assign(var=found["var"].where(found["quantity"] != "sm_clock"))


def of_values(cells: list[MeasuredCell]) -> DataFrame:
    """What the records name besides times, one number a process, but for two: what was recorded
    until the memory ran out is no peak of a step, and where a rung that takes turns uses what the
    others have reserved and freed, nobody knows what it needs itself."""
    rows = [*told(cells, "values"), *memory.values(cells), *agreement.values(cells)]
    found = where(_at_steps(rows, "value"), quantity=[*QUANTITIES]).astype({"value": float})
    lost = [cell.name for cell in of_study(cells, "memory") if cell.status()[0] != "ok"]
    is_lost = found["cell"].isin(lost) & found["quantity"].isin(PEAKS)
    allocated = where(found, quantity="peak_allocated")
    least = beside(found, allocated, [*STEP, "process"], "value")
    is_others = (found["quantity"] == "peak_reserved") & (found["value"] < least)
    kept = found[~is_lost & ~is_others]
    return kept.assign(mean=kept["value"], samples=1)


def _at_steps(rows: list[dict], column: str) -> DataFrame:
    """Rows that records hold, with KEY, process and a column: missing text is "", a missing number
    0, the phase of what is a mode's its whole."""
    found = DataFrame(rows, columns=[*KEY, "process", column])
    found[TEXT] = found[TEXT].astype("str").fillna("")
    numbers = ["length", "process"]
    found[numbers] = found[numbers].fillna(0).astype(int)
    whole = found["mode"].map(WHOLE).fillna(found["direction"])
    return found.assign(phase=found["phase"].where(found["phase"] != "", whole))


def summarised(processes: DataFrame, cells: list[MeasuredCell]) -> DataFrame:
    """A row a series, by KEY: median with its interval, mean and pooled standard deviation,
    processes and samples, and what limits it. Variants whose step is limited alike lend each other
    their spread."""
    value, var = processes["value"], processes["var"]
    freedom = (processes["samples"] - 1).where(var.notna())
    log = np.log(value.where(value > 0))
    processes = processes.assign(log=log, freedom=freedom, squares=var * freedom)
    found = processes.groupby(KEY, sort=False).agg(
        samples=("samples", "sum"),
        squares=("squares", "sum"),
        freedom=("freedom", "sum"),
        plain=("value", "median"),
        median=("log", "mean"),
        mean=("mean", "mean"),
        processes=("process", "nunique"),
    )
    found["median"] = np.exp(found["median"])
    found["std"] = np.sqrt(found["squares"] / found["freedom"])
    found = found.reset_index().join(places(cells)[["machine", "study"]], on="cell")
    found["device"] = mapped(found, cells, lambda cell: cell.spec.get("device", "cpu"))
    found["limits"] = alone.limits(found)
    known = found[~found["limits"].isin(["", "unknown"])]
    found["limited"] = beside(found, known[::-1], ["cell", "variant"], "limits").fillna("")
    index = [*KEY, *LENT]
    logs = processes.merge(found[index], on=KEY).set_index(index)["log"]
    between = statistics.between_processes(logs, index, ["quantity", *LENT])
    found = found.join(statistics.interval(between)[["low", "high"]], on=index)
    # Else it is a count, 0 of which there is no logarithm, or of one process.
    has_interval = found["low"] < found["high"]
    found["median"] = found["median"].where(has_interval, found["plain"])
    # Without a row a column would have no type.
    return found.assign(status="ok")[COLUMNS].astype(dict.fromkeys(derived.NUMBERS, float))


def placed(found: DataFrame, cells: list[MeasuredCell]) -> DataFrame:
    """The rows in the order of the cells, with their units and the columns of each cell's place; a
    ladder's with its own precision."""
    found = places(cells).merge(found, left_index=True, right_on="cell").reset_index(drop=True)
    unit = found["quantity"].map(UNITS)
    rate = np.where(found["size"] == "copy", "B/s", "FLOP/s")
    return found.assign(
        unit=unit.mask(found["quantity"] == "rate", rate),
        precision=mapped(found, cells, precision_of, "variant"),
        batch=mapped(found, cells, derived.batch_of, "length"),
        length=found["length"].where(found["length"] > 0),
    )


def failures(cells: list[MeasuredCell]) -> DataFrame:
    """A row of `time` without numbers for each mode or length that ran out of memory or is not
    possible."""
    found = _at_steps(told(cells, "statuses"), "status")
    failed = found[(found["status"] != "ok") & ~found["mode"].isin(QUANTITY_OF)]
    return failed.assign(quantity="time", processes=0, samples=0)


def limits_of_steps(medians: DataFrame, spec: dict) -> Series:
    """What limits the step of each row's variant. medians: a process's, by columns of samples, as
    `seconds`. spec: of its cell."""
    steps = where(medians, phase="step").rename(columns={"seconds": "median"})
    steps = steps.assign(quantity=steps["kind"].map(QUANTITY_OF), cell="", **spec)
    limits = alone.limits(steps)
    of_variant = limits[limits != ""].groupby(steps["variant"]).first()
    return medians["variant"].map(of_variant).fillna("unknown")
