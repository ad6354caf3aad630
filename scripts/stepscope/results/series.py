"""series.csv: every measured quantity of every variant, with its interval between processes, and
what follows."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from stepscope.axes import FULL, MODES
from stepscope.formulas import flops
from stepscope.measure.found import LAUNCH_LIMITED
from stepscope.results import agreement, data_sheets, models, statistics
from stepscope.results.cells import MeasuredCell
from stepscope.results.schema import SERIES

QUANTITIES = {  # kind of sample: the quantity that its seconds are
    **dict.fromkeys(("free", "phased", "burst", "sustained"), "time"),
    "host-free": "host_free_time",
    "busy": "busy_time",
}
KEY = ["cell", "variant", "mode", "phase", "length", "direction", "quantity"]
OF_MACHINE = [
    "machine",
    "study",
    "quantity",
    "limited",
]  # within which series lend each other their spread
TEXT = ["variant", "mode", "phase", "direction"]
PEAKS = ("peak_asked", "peak_allocated", "peak_reserved")
WHOLE = {mode.name: mode.whole for mode in MODES.values()}


def of(cells: list[MeasuredCell], samples: pd.DataFrame, more: list[dict] = ()) -> pd.DataFrame:
    """All rows, in the order of the cells. samples: by prepared(); more: values of records, with
    `cell`."""
    measured = [cell for cell in cells if cell.record]
    processes = pd.concat(
        [of_samples(samples), of_clock(samples), of_values(measured, more)], ignore_index=True
    )
    found = summarised(processes, measured)
    found["limits"] = limits(found, measured)
    parts = [found, *derived(found, measured, least_times(samples)), failures(measured, found)]
    parts = [part for part in parts if len(part)]
    return (
        placed(pd.concat(parts, ignore_index=True), cells)
        if parts
        else pd.DataFrame(columns=SERIES.names)
    )


def prepared(samples: pd.DataFrame) -> pd.DataFrame:
    """Samples with all the columns that series are told apart by: missing text is "", a missing
    number 0."""
    found = samples.copy()
    for name in [*TEXT, "kind"]:
        found[name] = (
            found.get(name, pd.Series("", found.index)).fillna("").astype("str").astype("category")
        )
    for name in ("length", "round", "process", "step"):
        found[name] = (
            pd.to_numeric(found.get(name, pd.Series(0, found.index))).fillna(0).astype(int)
        )
    for name in ("seconds", "warmup", "sm_clock_mhz"):
        found[name] = found.get(name, pd.Series(dtype=float))
    return found


def of_samples(found: pd.DataFrame) -> pd.DataFrame:
    """What each process gave: the median of its samples, with their mean, variance and number;
    warm-up left out."""
    found = found[~found["warmup"].astype(bool)]
    is_of_phases = (found["kind"] != "phased") | (
        found["phase"].astype(str) != found["mode"].astype(str).map(WHOLE)
    )
    by = found[is_of_phases].groupby(
        ["cell", "kind", *KEY[1:-1], "process"], observed=True, sort=False
    )["seconds"]
    each = by.agg(value="median", mean="mean", var="var", samples="count").reset_index()
    each["kind"] = each["kind"].astype(str)
    each["quantity"] = each["kind"].map(QUANTITIES)
    is_rate = each["kind"].isin(["burst", "sustained"])
    each["variant"] = each["variant"].astype(str).where(~is_rate, each["kind"])
    for name in ("cell", *TEXT):
        each[name] = each[name].astype(str)
    return each.drop(columns="kind").assign(unit="s")


def of_clock(samples: pd.DataFrame) -> pd.DataFrame:
    """The GPU's clock in each process: the median of what was read before its free whole steps,
    warm-up left out."""
    is_step = (
        (samples["kind"] == "free") & (samples["mode"] == "step") & ~samples["warmup"].astype(bool)
    )
    read = samples[is_step & samples["sm_clock_mhz"].notna()]
    by = read.groupby(["cell", "variant", "mode", "process"], observed=True, sort=False)[
        "sm_clock_mhz"
    ]
    each = by.agg(value="median", mean="mean", samples="count").reset_index()
    each = each.astype(dict.fromkeys(("cell", "variant", "mode"), "str"))
    return each.assign(phase=each["mode"], length=0, direction="", quantity="sm_clock", unit="MHz")


def of_values(cells: list[MeasuredCell], more: list[dict]) -> pd.DataFrame:
    """What the records name besides times, one number a process; the phase of what is a mode's is
    its whole. What was recorded until the memory ran out is no peak of a step."""
    rows = [
        {"cell": cell.name, **value} for cell in cells for value in cell.summary.get("values", [])
    ]
    lost = {
        cell.name for cell in cells if cell.place["study"] == "memory" and cell.status()[0] != "ok"
    }
    rows = [
        row for row in [*rows, *more] if row["cell"] not in lost or row["quantity"] not in PEAKS
    ]
    rows += _of_checks(cells)
    columns = ["cell", *TEXT, "length", "process", "quantity", "unit", "value"]
    found = pd.DataFrame(rows, columns=columns)
    found[TEXT] = found[TEXT].fillna("").astype("str")
    found[["length", "process"]] = found[["length", "process"]].fillna(0).astype(int)
    found["phase"] = found["phase"].where(
        found["phase"] != "", found["mode"].map(WHOLE).fillna(found["direction"])
    )
    found["value"] = found["value"].astype(float)
    found = reserved_at_least(found)
    return found.assign(mean=found["value"], samples=1)


def reserved_at_least(values: pd.DataFrame) -> pd.DataFrame:
    """The same with `peak_reserved` no less than `peak_allocated`: a rung that takes turns also
    uses what the others have reserved and freed, which it did not reserve itself."""
    by = ["cell", *TEXT, "length", "process"]
    allocated = (
        values[values["quantity"] == "peak_allocated"].drop_duplicates(by).set_index(by)["value"]
    )
    is_reserved = values["quantity"] == "peak_reserved"
    least = (
        allocated.reindex(pd.MultiIndex.from_frame(values.loc[is_reserved, by]))
        .fillna(0)
        .to_numpy()
    )
    values.loc[is_reserved, "value"] = values.loc[is_reserved, "value"].clip(lower=least)
    return values


def _checks(cell: MeasuredCell) -> dict[str, dict]:
    """What each rung computed, compared with the first (agreement.compared)."""
    found, rungs = cell.summary.get("checks", {}), cell.spec.get("variants", [])
    computed = {rung["name"]: found.get(rung["name"], {}) for rung in rungs}
    return agreement.compared(
        computed, {rung["name"]: rung.get("precision", "fp32") for rung in rungs}
    )


def _of_checks(cells: list[MeasuredCell]) -> Iterator[dict]:
    """How far each rung of a ladder computes another loss and other gradients than the first; inf:
    not a number."""
    for cell in cells:
        for name, check in _checks(cell).items():
            far = {
                key: math.inf if check[key] is None else check[key]
                for key in ("difference", "loss_difference")
            }
            judged = {} if check["tolerance"] is None else {"tolerance": check["tolerance"]}
            for quantity, number in (far | judged).items():
                place = {"cell": cell.name, "variant": name, "mode": "step"}
                yield place | {"quantity": quantity, "unit": "1", "value": number}


def differing(cells: list[MeasuredCell]) -> list[str]:
    """A line for each rung of a ladder that computes another loss or other gradients than the
    first."""
    return [
        f"{cell.name}: {name} computes another loss or other gradients than the first variant"
        for cell in cells
        for name, check in _checks(cell).items()
        if not check["same"]
    ]


def summarised(processes: pd.DataFrame, cells: list[MeasuredCell]) -> pd.DataFrame:
    """A row a series, by KEY: median with its interval, mean and pooled standard deviation,
    processes and samples."""
    of_cells = {cell.name: cell.place for cell in cells}
    limited = {
        (cell.name, name): one.get("limited")
        for cell in cells
        for name, one in cell.summary.get("variants", {}).items()
    }
    frame = processes.assign(
        machine=processes["cell"].map(lambda name: of_cells[name]["machine"]),
        study=processes["cell"].map(lambda name: of_cells[name]["study"]),
        limited=[
            limited.get(each) or ""
            for each in zip(processes["cell"], processes["variant"], strict=True)
        ],
        squares=processes["var"] * (processes["samples"] - 1),
        freedom=(processes["samples"] - 1).where(processes["var"].notna()),
    )
    index = [*OF_MACHINE, *KEY[:-1]]
    logs = np.log(frame.set_index(index)["value"].where(lambda value: value > 0))
    found = statistics.interval(statistics.between_processes(logs, index, OF_MACHINE))
    by = frame.groupby(index, sort=False)
    is_known = (
        found["low"] < found["high"]
    )  # else it is a count, 0 of which there is no logarithm, or of one process
    found["median"] = found["median"].where(is_known, by["value"].median())
    found = found.assign(
        unit=by["unit"].first(),
        mean=by["mean"].mean(),
        std=np.sqrt(by["squares"].sum(min_count=1) / by["freedom"].sum(min_count=1)),
        processes=by["process"].nunique(),
        samples=by["samples"].sum(),
        status="ok",
    )
    return found.reset_index().drop(columns=["machine", "study", "limited"])


def limits(found: pd.DataFrame, cells: list[MeasuredCell]) -> pd.Series:
    """What limits each free step, "" for all other rows: its time by the clock beside the host-free
    one, else the busy.

    A pass of attention is queued as a whole before it begins, so that its time is the GPU's.
    """
    place = ["cell", "variant", "mode", "phase", "length", "direction"]
    times = {name: rows.set_index(place)["median"] for name, rows in found.groupby("quantity")}
    device = {cell.name: cell.spec.get("device", "cpu") for cell in cells}
    study = {cell.name: cell.place["study"] for cell in cells}
    is_whole = found["mode"].map(WHOLE).fillna(found["direction"]) == found["phase"]
    free = found[
        (found["quantity"] == "time") & is_whole & ~found["cell"].map(study).isin(["ceilings"])
    ]
    alone = pd.Series(np.nan, free.index)
    for name in ("host_free_time", "busy_time"):
        if name in times:
            alone = alone.fillna(
                pd.Series(times[name].reindex(free.set_index(place).index).to_numpy(), free.index)
            )
    of_gpu = np.where(free["median"] > LAUNCH_LIMITED * alone, "launches", "gpu")
    of_gpu = np.where(
        alone.isna(), np.where(free["cell"].map(study) == "attention", "gpu", "unknown"), of_gpu
    )
    said = pd.Series(np.where(free["cell"].map(device) == "cpu", "cpu", of_gpu), free.index)
    return said.reindex(found.index).fillna("")


def derived(
    found: pd.DataFrame, cells: list[MeasuredCell], least: dict[str, dict[str, float]]
) -> list[pd.DataFrame]:
    """Rates, and what is a token's or a launch's, from times and values. least: by
    least_times()."""
    bursts, by_name = _bursts(cells, least), {cell.name: cell for cell in cells}
    tokens_of = {
        cell.name: cell.spec["batch"] * cell.spec["context"]
        for cell in cells
        if "context" in cell.spec
    }
    is_time = found["quantity"] == "time"
    steps = found[
        is_time & (found["mode"].map(WHOLE) == found["phase"]) & found["cell"].isin(tokens_of)
    ]
    work = _mapped(
        steps, lambda row: models.flop(by_name[row.cell], row.mode), ["cell", "mode"]
    ).astype(float)
    burst = _mapped(
        steps,
        lambda row: bursts.get(
            (by_name[row.cell].place["machine"], precision_of(by_name[row.cell], row.variant))
        ),
        ["cell", "variant"],
    ).astype(float)
    passes = found[is_time & (found["length"] > 0)]
    of_pass = ["cell", "length", "direction"]
    operations = _mapped(
        passes, lambda row: _attention_flops(by_name[row.cell], row.length, row.direction), of_pass
    )
    joules = found[(found["quantity"] == "energy") & found["cell"].isin(tokens_of)]
    of_token = {
        name: joules[name] / joules["cell"].map(tokens_of)
        for name in ("median", "low", "high", "mean", "std")
    }
    return [
        _rates(steps, steps["cell"].map(tokens_of), "tokens_per_second", "token/s"),
        _rates(steps, work, "flops", "FLOP/s"),
        _rates(steps, work / burst, "mfu", "1"),
        _rates(passes, operations, "rate", "FLOP/s"),
        joules.assign(quantity="energy_token", **of_token),
        _gaps(found),
        _ceiling_rows(found, cells, least),
    ]


def beyond(found: pd.DataFrame) -> list[str]:
    """A line for each series that is faster than its ceiling, which is a defect of the ceiling."""
    wrong = found[(found["quantity"] == "mfu") & (found["median"] > 1)]
    return [
        f"{row.cell} ({row.variant}, {row.phase}) reached {100 * row.median:.0f} % of the burst"
        f" ceiling of {row.precision}: the ceiling is wrong; measure the ceilings again"
        for row in wrong.itertuples()
    ]


def placed(found: pd.DataFrame, cells: list[MeasuredCell]) -> pd.DataFrame:
    """The rows in the order of the cells, with the columns of each cell's place; a ladder's with
    its own precision."""
    number = {cell.name: place for place, cell in enumerate(cells)}
    found = found.iloc[found["cell"].map(number).argsort(kind="stable")].reset_index(drop=True)
    of_cells = (
        pd.DataFrame([{"cell": cell.name, **cell.place} for cell in cells])
        .drop(columns="mode")
        .set_index("cell")
    )
    found = found.join(of_cells, on="cell")
    by_name = {cell.name: cell for cell in cells}
    own = _mapped(
        found, lambda row: precision_of(by_name[row.cell], row.variant), ["cell", "variant"]
    )
    found["precision"] = found["precision"].fillna(own)
    of_tokens = (found["length"] > 0) & found["batch"].isna()
    tokens = found["cell"].map({cell.name: cell.spec.get("tokens") for cell in cells})
    found.loc[of_tokens, "batch"] = (tokens // found["length"].where(of_tokens)).clip(lower=1)
    found["length"] = found["length"].where(found["length"] > 0)
    return found


def failures(cells: list[MeasuredCell], found: pd.DataFrame) -> pd.DataFrame:
    """A row of `time` without numbers for each mode or length that ran out of memory or is not
    possible."""
    rows = []
    for cell in cells:
        for one in cell.summary.get("statuses", []):
            mode = one.get("mode") or ""
            if one["status"] != "ok" and mode not in ("host-free", "busy"):
                phase = WHOLE.get(mode) or one.get("direction") or ""
                rows.append((cell.name, one["variant"], mode, phase, one.get("length") or 0, one.get("direction") or "",
                             "time", "s", 0, 0, one["status"]))  # fmt: skip
    failed = pd.DataFrame(rows, columns=[*KEY, "unit", "processes", "samples", "status"])
    measured = pd.MultiIndex.from_frame(found[KEY])
    return failed[~pd.MultiIndex.from_frame(failed[KEY]).isin(measured)]


def precision_of(cell: MeasuredCell, variant: str) -> str:
    """The precision that a variant of a cell runs in."""
    own = {one["name"]: one.get("precision", "fp32") for one in cell.spec.get("variants", [])}
    return cell.spec.get("precision") or own.get(variant, "fp32")


def _rates(times: pd.DataFrame, work: pd.Series, quantity: str, unit: str) -> pd.DataFrame:
    """work / time, with the interval's ends the other way round; rows without work are left out."""
    ends = {
        "median": work / times["median"],
        "low": work / times["high"],
        "high": work / times["low"],
    }
    return times.assign(**ends, quantity=quantity, unit=unit, mean=np.nan, std=np.nan, limits="")[
        work.notna()
    ]


def _gaps(found: pd.DataFrame) -> pd.DataFrame:
    """Seconds a launch that the whole step takes beyond what the GPU works for: the host-free time,
    else the busy."""
    of_steps = found[(found["mode"] == "step") & (found["phase"].isin(["step", ""]))]
    index = ["cell", "variant"]
    by = {
        name: rows.drop_duplicates(index).set_index(index)["median"]
        for name, rows in of_steps.groupby("quantity")
    }
    nothing = pd.Series(dtype=float)
    alone = by.get("host_free_time", nothing).combine_first(by.get("busy_time", nothing))
    steps = of_steps[(of_steps["quantity"] == "time") & (of_steps["phase"] == "step")]
    places = pd.MultiIndex.from_frame(steps[index])
    lost = steps["median"].to_numpy() - alone.reindex(places).to_numpy()
    gap = lost / by.get("launches", nothing).reindex(places).to_numpy()
    nan = dict.fromkeys(("low", "high", "mean", "std"), np.nan)
    return steps.assign(quantity="launch_gap", median=gap, limits="", **nan)[np.isfinite(gap)]


def _ceiling_rows(
    found: pd.DataFrame, cells: list[MeasuredCell], least: dict[str, dict[str, float]]
) -> pd.DataFrame:
    """The rates of ceilings: work over the least of the times, and beside them what the GPU's data
    sheet says."""
    rows = []
    for cell in cells:
        if cell.place["study"] != "ceilings":
            continue
        named = {
            "cell": cell.name,
            "mode": "",
            "phase": "",
            "length": 0,
            "direction": "",
            "quantity": "rate",
        }
        named |= {"unit": "FLOP/s" if cell.spec["operation"] == "matmul" else "B/s", "status": "ok"}
        for variant, seconds in least.get(cell.name, {}).items():
            own = found[(found["cell"] == cell.name) & (found["variant"] == variant)]
            counts = {name: own[name].max() for name in ("processes", "samples")}
            rows.append(named | counts | {"variant": variant, "median": _work(cell) / seconds})
        gpu = cell.record["provenance"]["hardware"].get("gpu")
        if sheet := data_sheets.rate(gpu, cell.spec["operation"], cell.spec["precision"]):
            rows.append(
                named | {"variant": "datasheet", "median": sheet, "processes": 0, "samples": 0}
            )
    return pd.DataFrame(rows)


def least_times(samples: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Cell of ceilings: seconds of its shortest operation, sustained, and `burst`: at any time."""
    kept = samples[samples["kind"].isin(["burst", "sustained"]) & ~samples["warmup"].astype(bool)]
    found: dict[str, dict[str, float]] = {}
    for (cell, kind), seconds in (
        kept.groupby(["cell", "kind"], observed=True)["seconds"].min().items()
    ):
        found.setdefault(cell, {})[kind] = seconds
    return {cell: kinds | {"burst": min(kinds.values())} for cell, kinds in found.items()}


def _work(cell: MeasuredCell) -> float:
    """FLOP of a product of two matrices (order, order), 2 n³; bytes that a copy reads and
    writes."""
    return 2.0 * (
        cell.spec["order"] ** 3
        if cell.spec["operation"] == "matmul"
        else cell.spec["mebibytes"] * 2**20
    )


def _bursts(
    cells: list[MeasuredCell], least: dict[str, dict[str, float]]
) -> dict[tuple[str, str], float]:
    """(machine, precision): FLOP/s of the product's burst."""
    return {
        (cell.place["machine"], cell.spec["precision"]): _work(cell) / seconds
        for cell in cells
        if cell.place["study"] == "ceilings" and cell.spec["operation"] == "matmul"
        if (seconds := least.get(cell.name, {}).get("burst"))
    }


def _attention_flops(cell: MeasuredCell, length: int, direction: str) -> float:
    spec = cell.spec
    batch = spec["batch"] if "batch" in spec else max(1, spec["tokens"] // length)
    place = (
        batch,
        spec.get("heads") or 1,
        length,
        spec["d_head"],
        spec.get("mask", FULL),
        direction,
    )
    return flops.attention_flops(*place, spec.get("keys") or None, spec.get("window") or None)


def _mapped(rows: pd.DataFrame, value: Callable, columns: list[str]) -> pd.Series:
    """value(row) for each row; asked once for rows that are equal in the columns."""
    known = {
        tuple(row): value(row) for row in rows[columns].drop_duplicates().itertuples(index=False)
    }
    return pd.Series(
        [known[key] for key in rows[columns].itertuples(index=False, name=None)], rows.index
    )
