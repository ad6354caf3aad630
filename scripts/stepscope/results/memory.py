"""What the closed form says of memory, beside what snapshots recorded."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
from pandas import DataFrame

from stepscope.axes import modes_up_to
from stepscope.formulas import footprint, footprint_peak
from stepscope.formulas.footprint import Setup, group, total
from stepscope.formulas.footprint_peak import MODES, Peak
from stepscope.results.cells import MeasuredCell, mapped, of_study
from stepscope.results.formula_of_tensor import formula_of
from stepscope.results.schema import TABLES

ITEM = "item"  # category of rows that compare a sum
# Sum that is compared: the flags of a mode and of a step in which it is there, and its closed form.
ITEMS = {
    "parameters": ("", lambda setup: group(setup, "parameters")),
    "cast weights": ("autocast", footprint.all_cast_weights),
    "gradients": ("backward", lambda setup: group(setup, "gradients")),
    "optimizer state": ("step", lambda setup: group(setup, "optimizer state")),
    "saved by a block": ("forward", lambda setup: group(setup, "saved by a block")),
    "saved outside the blocks": ("forward", footprint.saved_outside),
}
SAVED = {"block": "saved by a block", "rest": "saved outside the blocks"}
WORKSPACE = "workspace"
Bytes = dict[tuple[str, str], int]

_peak = functools.cache(footprint_peak.peak)


def recorded(cells: list[MeasuredCell], tables: Mapping[str, DataFrame]) -> Bytes:
    """What snapshots recorded of each item and of libraries' `workspace`, by cell and name; of a
    block as often as there are blocks, of what a block saves once. Of workspaces also the most, by
    machine and mode. tables: by analyses.read()."""
    blocks = {cell.name: cell.blocks or 0 for cell in cells}
    named, saved = tables["memory_named"], tables["memory_saved"]
    times = named["cell"].map(blocks).where(named["part"] == "block", 1)
    activations = saved[saved["category"] == "activations"]
    parts = activations["part"].map(SAVED)
    most = {
        "cast weights": tables["memory_timeline"].groupby("cell")["cast_weights"].max(),
        "peak": tables["memory_summary"].groupby("cell")["peak"].max(),
    }
    sums = [
        (named["bytes"] * times).groupby([named["cell"], named["category"]]).sum(),
        activations["bytes"].groupby([activations["cell"], parts]).sum(),
        pd.concat(most).swaplevel(),
    ]
    found: Bytes = pd.concat(sums).to_dict()
    for cell in of_study(cells, "memory"):
        own, alike = (
            found.get((cell.name, WORKSPACE), 0),
            (cell.place["machine"], cell.place["mode"]),
        )
        found[alike] = max(found.get(alike, 0), own)
    return found


def _workspace(cell: MeasuredCell, mode: str, known: Bytes) -> int:
    """Bytes that libraries hold, as recorded there, else in the machine's other cells of that
    mode."""
    alike = cell.place["machine"], mode
    return known.get((cell.name, WORKSPACE)) or known.get(alike, 0)


def _moment(cell: MeasuredCell, known: Bytes) -> Peak | None:
    """Of the peak in closed form; None for a model of one's own, a compiler or checkpoints."""
    setup, mode = setup_of(cell, cell.spec), cell.place["mode"]
    if setup is None or {"compile", "checkpoint"} & set(cell.spec):
        return None
    return _peak(setup, mode, _workspace(cell, mode, known))


def setup_of(cell: MeasuredCell, spec: dict) -> Setup | None:
    """What the closed form needs of a spec, the cell's or a variant's; None without a shape, or for
    options of which it knows nothing."""
    if cell.shape is None:
        return None
    setup = Setup.of(spec)
    return setup if setup.is_known else None


def values(cells: list[MeasuredCell], known: Bytes) -> list[dict]:
    """Values, as records have them, with `cell`: predicted peaks of all cells, recorded peaks of
    snapshots. known: by recorded()."""
    found = []
    for cell in of_study(cells, "memory"):
        baselines = cell.summary.get("memory", {}).get("baselines") or {}
        sizes = {f"{name}_bytes": size for name, size in baselines.items()}
        sizes["peak_asked"] = known.get((cell.name, "peak"))
        place = {"cell": cell.name, "variant": "step", "mode": cell.place["mode"]}
        found += [place | {"quantity": name, "value": each} for name, each in sizes.items()]
    for cell in of_study(cells, "timing", "ladder", "memory"):
        found += _predicted_peaks(cell, known)
    return [value for value in found if value["value"]]


def _predicted_peaks(cell: MeasuredCell, known: Bytes) -> Iterator[dict]:
    """The closed form's peak of each variant and mode that the cell measures."""
    own = cell.place["mode"]
    modes = modes_up_to(own) if cell.place["study"] == "timing" else [own]
    for variant in cell.spec.get("variants", [{"name": "step"}]):
        spec = cell.spec | variant
        setup = setup_of(cell, spec)
        # A compiler keeps what it likes: it has no closed form.
        if setup is None or spec.get("compile", "none") != "none":
            continue
        place = {"cell": cell.name, "variant": variant["name"], "quantity": "peak_predicted"}
        for mode in modes:
            every = spec.get("checkpoint", 0) if "backward" in MODES[mode] else 0
            moment = _peak(replace(setup, checkpoint=every), mode)
            yield place | {"mode": mode, "value": moment.bytes + _workspace(cell, mode, known)}


def peak(rows: DataFrame, predicted: DataFrame) -> DataFrame:
    """memory_peak with what the closed form predicts of each category. predicted: by
    predictions()."""
    by = ["cell", "category"]
    sums = predicted.groupby(by)["predicted"].sum()
    return rows.assign(predicted=rows[by].join(sums, on=by)["predicted"])


def with_formulas(rows: DataFrame, cells: list[MeasuredCell]) -> DataFrame:
    """memory_largest or memory_saved with the formula of one tensor's bytes, where one is found."""
    tensors = rows.assign(bytes=rows["bytes"] // rows.get("tensors", 1))

    def formula(cell: MeasuredCell, size: float, shape: object, dtype: str, category: str) -> str:
        """Of the one tensor, "" where its shape is none of the model's."""
        setup = setup_of(cell, cell.spec)
        if setup is None or not isinstance(shape, str):
            return ""
        dims = tuple(map(int, shape.split("×")))
        return formula_of(setup, int(size), dims, dtype, category) or ""

    columns = ("bytes", "shape", "dtype", "category")
    return rows.assign(formula=mapped(tensors, cells, formula, *columns))


def predictions(cells: list[MeasuredCell], known: Bytes) -> DataFrame:
    """memory_predicted: the contributions to each predicted peak, and sums beside what was
    recorded."""
    rows = []
    for cell in of_study(cells, "memory"):
        moment = _moment(cell, known)
        for each in moment.contributions if moment else ():
            told = {"formula": each.formula, "predicted": each.bytes}
            rows.append(cell.key | vars(each) | told)
        rows += _items(cell, known, moment)
    found = DataFrame(rows, columns=TABLES["memory_predicted"].names)
    return found.astype({"measured": float}).dropna(subset=["predicted", "measured"], how="all")


def _items(cell: MeasuredCell, known: Bytes, moment: Peak | None) -> Iterator[dict]:
    """Sums, predicted and measured; of a model of one's own what follows from its parameters."""
    setup = setup_of(cell, cell.spec)
    flags = (setup.flags if setup else frozenset()) | MODES[cell.place["mode"]]
    own = _of_own_model(cell)
    unknown: set[str] = set()
    # What was saved until the memory ran out is not all.
    if cell.summary.get("memory", {}).get("recorded") == "warm-up":
        unknown |= {*SAVED.values()}
    if cell.status()[0] != "ok":
        unknown.add("peak")
    sums: dict[str, Any] = {}
    for name, (condition, formula) in ITEMS.items():
        if footprint.holds(condition, flags):
            sums[name] = formula(setup) if setup else None
    sums["peak"] = moment.contributions if moment else None
    for name, parts in sums.items():
        formulas = dict.fromkeys(each.formula for each in parts or ())
        yield cell.key | {
            "category": ITEM,
            "module": moment.part if moment and name == "peak" else "",
            "name": name,
            "predicted": own.get(name) if parts is None else total(parts),
            "measured": None if name in unknown else known.get((cell.name, name)),
            # A sum of more is longer than a reader takes in.
            "formula": " + ".join(formulas) if len(formulas) < 4 else "",
        }


def _of_own_model(cell: MeasuredCell) -> dict[str, int | None]:
    """Bytes of its parameters in their own types: AdamW keeps two moments of each that it trains.
    A record of before has their numbers alone, all in fp32."""
    own = cell.own_model
    every = own.get("parameters_bytes", 4 * (own.get("parameters") or 0))
    trained = own.get("trained_bytes", 4 * (own.get("trainable_parameters") or 0))
    return {
        "parameters": every or None,
        "gradients": trained or None,
        "optimizer state": 2 * trained or None if "model" in cell.spec else None,
    }
