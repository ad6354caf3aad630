"""series.csv: every measured quantity of every variant, with its interval between processes, and
what follows."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from stepscope.results import alone, checks, derived, statistics, variants
from stepscope.results.alone import STEP, WHOLE
from stepscope.results.ceilings import RATES, least_times
from stepscope.results.cells import MeasuredCell, places, precision_of
from stepscope.results.mapped import beside, mapped
from stepscope.results.records import TEXT
from stepscope.results.tables import where

QUANTITY_OF = {  # kind of sample: the quantity that its seconds are
    "free": "time",
    "phased": "time",
    "host-free": alone.HOST_FREE,
    "busy": alone.BUSY,
    **dict.fromkeys(RATES, "time"),
}
KEY = [*STEP, "quantity"]
# Within which series lend each other their spread: a study on a machine, and what limits alike.
LENT = ["machine", "study", "limited"]
COLUMNS = ["unit", *derived.NUMBERS, "processes", "samples", "status", "limits"]
PEAKS = ("peak_asked", "peak_allocated", "peak_reserved")


def of(cells: list[MeasuredCell], samples: pd.DataFrame, more: Sequence[dict] = ()) -> pd.DataFrame:
    """All rows, in the order of the cells. samples: by cells.read(); more: values of records, with
    `cell`."""
    measured = [cell for cell in cells if cell.record]
    processes = [of_samples(samples), of_values(measured, more)]
    found = summarised(pd.concat(processes, ignore_index=True), measured)
    times_alone = alone.times(found, variants.asides(measured))
    found = pd.concat([found, times_alone], ignore_index=True)
    following = derived.rows(found, measured, least_times(samples))
    parts = [part for part in (*following, failures(measured)) if len(part)]
    # What failed here may have been measured there.
    every = pd.concat([found, *parts], ignore_index=True).drop_duplicates(KEY)
    return placed(every, cells)


def of_samples(samples: pd.DataFrame) -> pd.DataFrame:
    """What each process gave, warm-up left out: the median of its samples, with their mean,
    variance and number; of the GPU's clock what was read before free whole steps."""
    kept = samples[~samples["warmup"]]
    # A phased step is only known by its phases: a whole one is timed free.
    is_sum_of_phases = (kept["kind"] == "phased") & (kept["phase"] == kept["mode"].map(WHOLE))
    times = kept[~is_sum_of_phases]
    times = times.assign(
        variant=times["variant"].mask(times["kind"].isin(RATES), times["kind"]),
        quantity=times["kind"].map(QUANTITY_OF),
        unit="s",
        value=times["seconds"],
    )
    clocks = where(kept, kind="free", mode="step").dropna(subset="sm_clock_mhz")
    clocks = clocks.assign(quantity="sm_clock", unit="MHz", value=clocks["sm_clock_mhz"])
    both = pd.concat([times, clocks], ignore_index=True)
    by = both.groupby([*KEY, "unit", "process"], sort=False)["value"]
    found = by.agg(value="median", mean="mean", var="var", samples="count").reset_index()
    # A clock is read, its deviation is none of the steps'.
    return found.assign(var=found["var"].where(found["unit"] == "s"))


def of_values(cells: list[MeasuredCell], more: Sequence[dict]) -> pd.DataFrame:
    """What the records name besides times, one number a process, but for two: what was recorded
    until the memory ran out is no peak of a step, and where a rung that takes turns uses what the
    others have reserved and freed, nobody knows what it needs itself."""
    rows = [{"cell": cell.name, **one} for cell in cells for one in cell.summary.get("values", [])]
    rows += [*more, *checks.values(cells)]
    found = _at_steps(rows, ["quantity", "unit", "value"]).astype({"value": float})
    memory = [cell for cell in cells if cell.place["study"] == "memory"]
    lost = [cell.name for cell in memory if cell.status()[0] != "ok"]
    is_lost = found["cell"].isin(lost) & found["quantity"].isin(PEAKS)
    by = [*STEP, "process"]
    least = beside(found, where(found, quantity="peak_allocated"), by, "value")
    is_others = (found["quantity"] == "peak_reserved") & (found["value"] < least)
    kept = found[~is_lost & ~is_others]
    return kept.assign(mean=kept["value"], samples=1)


def _at_steps(rows: list[dict], columns: list[str]) -> pd.DataFrame:
    """Rows that records hold, with STEP, process and these columns: missing text is "", a missing
    number 0, the phase of what is a mode's its whole."""
    found = pd.DataFrame(rows, columns=[*STEP, "process", *columns])
    found[TEXT] = found[TEXT].fillna("").astype("str")
    numbers = ["length", "process"]
    found[numbers] = found[numbers].fillna(0).astype(int)
    whole = found["mode"].map(WHOLE).fillna(found["direction"])
    return found.assign(phase=found["phase"].where(found["phase"] != "", whole))


def summarised(processes: pd.DataFrame, cells: list[MeasuredCell]) -> pd.DataFrame:
    """A row a series, by KEY: median with its interval, mean and pooled standard deviation,
    processes and samples, and what limits it. Variants whose step is limited alike lend each other
    their spread."""
    freedom = processes["samples"] - 1
    processes = processes.assign(
        log=np.log(processes["value"].where(processes["value"] > 0)),
        squares=processes["var"] * freedom,
        freedom=freedom.where(processes["var"].notna()),
    )
    by = processes.groupby(KEY, sort=False)
    found = by.agg(
        centre=("log", "mean"),
        plain=("value", "median"),
        unit=("unit", "first"),
        mean=("mean", "mean"),
        processes=("process", "nunique"),
        samples=("samples", "sum"),
        squares=("squares", "sum"),
        freedom=("freedom", "sum"),
    )
    found["std"] = np.sqrt(found["squares"] / found["freedom"])
    found = found.reset_index().join(places(cells)[["machine", "study"]], on="cell")
    found["device"] = mapped(found, cells, lambda cell: cell.spec.get("device", "cpu"))
    found["median"] = np.exp(found["centre"])
    found["limits"] = alone.limits(found)
    found["limited"] = _limited(found)
    index = [*KEY, *LENT]
    logs = processes.join(found.set_index(KEY)[LENT], on=KEY).set_index(index)["log"]
    between = statistics.between_processes(logs, index, ["quantity", *LENT])
    ends = statistics.interval(between)[["low", "high"]].droplevel([*LENT])
    found = found.join(ends, on=KEY)
    # Else it is a count, 0 of which there is no logarithm, or of one process.
    has_interval = found["low"] < found["high"]
    found["median"] = found["median"].where(has_interval, found["plain"])
    # Without a row a column would have no type.
    types = dict.fromkeys(derived.NUMBERS, float)
    return found.assign(status="ok")[[*KEY, *COLUMNS]].astype(types)


def _limited(found: pd.DataFrame) -> pd.Series:
    """What limits the variant that a series is of; "" where it is not known."""
    known = found[~found["limits"].isin(["", "unknown"])]
    return beside(found, known[::-1], ["cell", "variant"], "limits").fillna("")


def placed(found: pd.DataFrame, cells: list[MeasuredCell]) -> pd.DataFrame:
    """The rows in the order of the cells, with the columns of each cell's place; a ladder's with
    its own precision."""
    of_cells = places(cells).drop(columns="mode")
    found = found.join(of_cells, on="cell")
    order = found["cell"].map({cell.name: place for place, cell in enumerate(cells)})
    found = found.loc[order.sort_values(kind="stable").index].reset_index(drop=True)
    length = found["length"].where(found["length"] > 0)
    tokens = mapped(found, cells, lambda cell: cell.spec.get("tokens")).astype(float)
    return found.assign(
        precision=mapped(found, cells, precision_of, "variant"),
        batch=found["batch"].fillna((tokens // length).clip(lower=1)),
        length=length,
    )


def failures(cells: list[MeasuredCell]) -> pd.DataFrame:
    """A row of `time` without numbers for each mode or length that ran out of memory or is not
    possible."""
    rows = [
        {"cell": cell.name, **one} for cell in cells for one in cell.summary.get("statuses", [])
    ]
    found = _at_steps(rows, ["status"]).drop(columns="process")
    failed = found[(found["status"] != "ok") & ~found["mode"].isin(QUANTITY_OF)]
    return failed.assign(quantity="time", unit="s", processes=0, samples=0)
