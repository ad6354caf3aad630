"""series.csv: every measured quantity of every variant, with its interval between processes, and
what follows."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from stepscope.results import alone, checks, derived, statistics, variants
from stepscope.results.alone import WHOLE
from stepscope.results.ceilings import least_times
from stepscope.results.cells import MeasuredCell, precision_of
from stepscope.results.mapped import mapped
from stepscope.results.schema import TABLES

RATES = ("burst", "sustained")  # kinds of samples of ceilings, which are variants of their cell
QUANTITY_OF = {  # kind of sample: the quantity that its seconds are
    "free": "time",
    "phased": "time",
    "host-free": alone.HOST_FREE,
    "busy": alone.BUSY,
    **dict.fromkeys(RATES, "time"),
}
KEY = [*alone.STEP, "quantity"]
# Within which series lend each other their spread.
OF_MACHINE = ["machine", "study", "quantity", "limited"]
TEXT = ["variant", "mode", "phase", "direction"]
COUNTS = ["length", "round", "process", "step"]
PEAKS = ("peak_asked", "peak_allocated", "peak_reserved")


def of(cells: list[MeasuredCell], samples: pd.DataFrame, more: Sequence[dict] = ()) -> pd.DataFrame:
    """All rows, in the order of the cells. samples: by prepared(); more: values of records, with
    `cell`."""
    measured = [cell for cell in cells if cell.record]
    parts = [of_samples(samples), of_clock(samples), of_values(measured, more)]
    processes = pd.concat(parts, ignore_index=True)
    found = summarised(processes, measured, limits(processes, measured))
    times_alone = alone.times(found, variants.asides(measured))
    found = pd.concat([found, times_alone], ignore_index=True)
    following = derived.rows(found, measured, least_times(samples))
    parts = [part for part in (found, *following, failures(measured, found)) if len(part)]
    if not parts:
        return pd.DataFrame(columns=TABLES["series"].names)
    return placed(pd.concat(parts, ignore_index=True), cells)


def prepared(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples with all the columns that series are told apart by: missing text is "", a missing
    number 0."""
    found = samples.copy()
    for name in [*TEXT, "kind"]:
        words = found.get(name, pd.Series("", found.index))
        found[name] = words.fillna("").astype("str").astype("category")
    for name in COUNTS:
        numbers = found.get(name, pd.Series(0, found.index))
        found[name] = pd.to_numeric(numbers).fillna(0).astype(int)
    for name in ("seconds", "warmup", "sm_clock_mhz"):
        found[name] = found.get(name, pd.Series(dtype=float))
    # What was refused may have made text of a column.
    for name in ("seconds", "sm_clock_mhz"):
        found[name] = found[name].astype(float)
    return found


def of_samples(samples: pd.DataFrame) -> pd.DataFrame:
    """What each process gave: the median of its samples, with their mean, variance and number;
    warm-up left out."""
    kept = samples[~samples["warmup"].astype(bool)]
    whole = kept["mode"].astype(str).map(WHOLE)
    # A phased step is only known by its phases: a whole one is timed free.
    is_sum_of_phases = (kept["kind"] == "phased") & (kept["phase"].astype(str) == whole)
    by = ["cell", "kind", *alone.STEP[1:], "process"]
    grouped = kept[~is_sum_of_phases].groupby(by, observed=True, sort=False)["seconds"]
    each = grouped.agg(value="median", mean="mean", var="var", samples="count").reset_index()
    kind = each["kind"].astype(str)
    each["quantity"] = kind.map(QUANTITY_OF)
    each["variant"] = each["variant"].astype(str).where(~kind.isin(RATES), kind)
    for name in ("cell", *TEXT):
        each[name] = each[name].astype(str)
    return each.drop(columns="kind").assign(unit="s")


def of_clock(samples: pd.DataFrame) -> pd.DataFrame:
    """The GPU's clock in each process: the median of what was read before its free whole steps,
    warm-up left out."""
    is_step = (samples["kind"] == "free") & (samples["mode"] == "step")
    is_read = samples["sm_clock_mhz"].notna() & ~samples["warmup"].astype(bool)
    by = ["cell", "variant", "mode", "process"]
    grouped = samples[is_step & is_read].groupby(by, observed=True, sort=False)["sm_clock_mhz"]
    each = grouped.agg(value="median", mean="mean", samples="count").reset_index()
    each = each.astype(dict.fromkeys(("cell", "variant", "mode"), "str"))
    return each.assign(phase=each["mode"], length=0, direction="", quantity="sm_clock", unit="MHz")


def of_values(cells: list[MeasuredCell], more: Sequence[dict]) -> pd.DataFrame:
    """What the records name besides times, one number a process; the phase of what is a mode's is
    its whole. What was recorded until the memory ran out is no peak of a step."""
    lost = {
        cell.name for cell in cells if cell.place["study"] == "memory" and cell.status()[0] != "ok"
    }
    rows = [{"cell": cell.name, **value} for cell in cells for value in cell.values]
    rows += [*more, *checks.values(cells)]
    kept = [row for row in rows if row["cell"] not in lost or row["quantity"] not in PEAKS]
    columns = ["cell", *TEXT, "length", "process", "quantity", "unit", "value"]
    found = pd.DataFrame(kept, columns=columns)
    found[TEXT] = found[TEXT].fillna("").astype("str")
    found[["length", "process"]] = found[["length", "process"]].fillna(0).astype(int)
    whole = found["mode"].map(WHOLE).fillna(found["direction"])
    found["phase"] = found["phase"].where(found["phase"] != "", whole)
    found["value"] = found["value"].astype(float)
    found = own_reserved(found)
    return found.assign(mean=found["value"], samples=1)


def own_reserved(values: pd.DataFrame) -> pd.DataFrame:
    """The same without `peak_reserved` that is less than `peak_allocated`: a rung that takes turns
    also uses what the others have reserved and freed, so that nobody knows what it needs itself."""
    by = [*alone.STEP, "process"]
    allocated = values[values["quantity"] == "peak_allocated"].drop_duplicates(by)
    places = pd.MultiIndex.from_frame(values[by])
    least = allocated.set_index(by)["value"].reindex(places).fillna(0).to_numpy()
    is_known = (values["quantity"] != "peak_reserved") | (values["value"] >= least)
    return values[is_known]


def limits(processes: pd.DataFrame, cells: list[MeasuredCell]) -> pd.Series:
    """By KEY: what limits each free whole step or pass (alone.limits)."""
    logs = np.log(processes["value"].where(processes["value"] > 0))
    by = processes.assign(median=logs).groupby(KEY, sort=False)["median"]
    found = np.exp(by.mean()).dropna().reset_index()
    device = {cell.name: cell.spec.get("device", "cpu") for cell in cells}
    study = {cell.name: cell.place["study"] for cell in cells}
    found["limits"] = alone.limits(found, device, study)
    return found.set_index(KEY)["limits"]


def summarised(
    processes: pd.DataFrame, cells: list[MeasuredCell], limits: pd.Series
) -> pd.DataFrame:
    """A row a series, by KEY: median with its interval, mean and pooled standard deviation,
    processes and samples, and what limits it. Variants whose step is limited alike lend each other
    their spread."""
    place = {cell.name: cell.place for cell in cells}
    known = limits[~limits.isin(["", "unknown"])]
    of_variants = known.groupby(level=["cell", "variant"]).last()
    own = pd.MultiIndex.from_frame(processes[["cell", "variant"]])
    frame = processes.assign(
        machine=processes["cell"].map({name: each["machine"] for name, each in place.items()}),
        study=processes["cell"].map({name: each["study"] for name, each in place.items()}),
        limited=of_variants.reindex(own).fillna("").to_numpy(),
        squares=processes["var"] * (processes["samples"] - 1),
        freedom=(processes["samples"] - 1).where(processes["var"].notna()),
    )
    index = [*OF_MACHINE, *alone.STEP]
    values = frame.set_index(index)["value"]
    logs = pd.Series(np.log(values.where(values > 0)))
    found = statistics.interval(statistics.between_processes(logs, index, OF_MACHINE))
    by = frame.groupby(index, sort=False)
    # Else it is a count, 0 of which there is no logarithm, or of one process.
    has_interval = found["low"] < found["high"]
    squares, freedom = by["squares"].sum(min_count=1), by["freedom"].sum(min_count=1)
    found = found.assign(
        median=found["median"].where(has_interval, by["value"].median()),
        unit=by["unit"].first(),
        mean=by["mean"].mean(),
        std=np.sqrt(squares / freedom),
        processes=by["process"].nunique(),
        samples=by["samples"].sum(),
        status="ok",
    )
    found = found.reset_index().drop(columns=["machine", "study", "limited"])
    # Without a row a column would have no type.
    return found.astype(dict.fromkeys(derived.NUMBERS, float)).join(limits, on=KEY)


def placed(found: pd.DataFrame, cells: list[MeasuredCell]) -> pd.DataFrame:
    """The rows in the order of the cells, with the columns of each cell's place; a ladder's with
    its own precision."""
    order = {cell.name: place for place, cell in enumerate(cells)}
    in_order = found["cell"].map(order).argsort(kind="stable")
    found = found.iloc[in_order].reset_index(drop=True)
    of_cells = pd.DataFrame([{"cell": cell.name, **cell.place} for cell in cells])
    found = found.join(of_cells.drop(columns="mode").set_index("cell"), on="cell")
    by_name = {cell.name: cell for cell in cells}
    own = mapped(found, ["cell", "variant"], lambda cell, name: precision_of(by_name[cell], name))
    found["precision"] = found["precision"].fillna(own)
    of_tokens = (found["length"] > 0) & found["batch"].isna()
    tokens = found["cell"].map({cell.name: cell.spec.get("tokens") for cell in cells})
    sequences = tokens // found["length"].where(of_tokens)
    found.loc[of_tokens, "batch"] = sequences.clip(lower=1)
    found["length"] = found["length"].where(found["length"] > 0)
    return found


def failures(cells: list[MeasuredCell], found: pd.DataFrame) -> pd.DataFrame:
    """A row of `time` without numbers for each mode or length that ran out of memory or is not
    possible."""
    rows = [
        _failed(cell.name, one)
        for cell in cells
        for one in cell.summary.get("statuses", [])
        if one["status"] != "ok" and one.get("mode") not in QUANTITY_OF
    ]
    failed = pd.DataFrame(rows, columns=[*KEY, "unit", "processes", "samples", "status"])
    measured = pd.MultiIndex.from_frame(found[KEY])
    return failed[~pd.MultiIndex.from_frame(failed[KEY]).isin(measured)]


def _failed(cell: str, one: dict) -> dict:
    mode, direction = one.get("mode") or "", one.get("direction") or ""
    return {
        "cell": cell,
        "variant": one["variant"],
        "mode": mode,
        "phase": WHOLE.get(mode, direction),
        "length": one.get("length") or 0,
        "direction": direction,
        "quantity": "time",
        "unit": "s",
        "processes": 0,
        "samples": 0,
        "status": one["status"],
    }
