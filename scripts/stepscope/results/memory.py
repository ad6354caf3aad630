"""What the closed form says of memory, beside what snapshots recorded."""

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from stepscope.axes import modes_up_to
from stepscope.formulas import footprint, footprint_peak
from stepscope.formulas.footprint import Setup, group, total
from stepscope.formulas.footprint_peak import MODES, Peak
from stepscope.results.cells import MeasuredCell, mapped, of_study
from stepscope.results.formula_of_tensor import formula_of
from stepscope.results.schema import TABLES

ITEM = "item"  # category of rows that compare a sum
PARTS = ("block", "rest")
# Sum that is compared: the flags of a mode and of a step in which it is there, and its closed form.
ITEMS = {
    "parameters": ("", lambda setup: group(setup, "parameters")),
    "cast weights": ("autocast", footprint.all_cast_weights),
    "gradients": ("backward", lambda setup: group(setup, "gradients")),
    "optimizer state": ("step", lambda setup: group(setup, "optimizer state")),
    "saved by a block": ("forward", lambda setup: group(setup, "saved by a block")),
    "saved outside the blocks": ("forward", footprint.saved_outside),
}
SAVED = list(ITEMS)[-2:]  # of PARTS

_peak = functools.cache(footprint_peak.peak)


class Snapshots:
    """The analyses of all recorded cells; tables as analyses.read() gives them.

    named, saved: bytes by cell, category and part (a `block`, or the `rest`): of tensors that the
    program knows by name, of those that autograd saved. peaks, casts: the most bytes by cell, in
    all and of cast weights.
    """

    def __init__(self, cells: list[MeasuredCell], tables: dict[str, pd.DataFrame]):
        self.cells = of_study(cells, "memory")
        part = ["cell", "category", "part"]
        self.named = tables["memory_named"].groupby(part)["bytes"].sum()
        self.saved = tables["memory_saved"].groupby(part)["bytes"].sum()
        self.peaks = tables["memory_summary"].groupby("cell")["peak"].max()
        self.casts = tables["memory_timeline"].groupby("cell")["cast_weights"].max()
        # By cell, and the most by machine and mode.
        self._workspaces: dict[object, int] = {}
        for cell in self.cells:
            own = self.named.get((cell.name, "workspace", "rest"), 0)
            alike = cell.place["machine"], cell.place["mode"]
            self._workspaces[cell.name] = own
            self._workspaces[alike] = max(self._workspaces.get(alike, 0), own)

    def workspace(self, cell: MeasuredCell, mode: str) -> int:
        """Bytes that libraries hold, as recorded there, else in the machine's other cells of that
        mode."""
        alike = cell.place["machine"], mode
        return self._workspaces.get(cell.name) or self._workspaces.get(alike, 0)

    def alive(self, cell: MeasuredCell, category: str) -> int | None:
        """Bytes of a category: those of a block as often as there are blocks, and of the rest."""
        block, rest = (self.named.get((cell.name, category, part)) for part in PARTS)
        if block is None and rest is None:
            return None
        return (block or 0) * (cell.blocks or 0) + (rest or 0)

    def predicted(self, cell: MeasuredCell) -> Peak | None:
        """The moment of the peak in closed form; None for a model of one's own, a compiler or
        checkpoints."""
        setup, mode = setup_of(cell, cell.spec), cell.place["mode"]
        if setup is None or {"compile", "checkpoint"} & set(cell.spec):
            return None
        return _peak(setup, mode, self.workspace(cell, mode))


def setup_of(cell: MeasuredCell, spec: dict) -> Setup | None:
    """What the closed form needs of a spec, the cell's or a variant's; None without a shape, or for
    options of which it knows nothing."""
    if cell.shape is None:
        return None
    setup = Setup.of(spec)
    return setup if setup.is_known else None


def values(cells: list[MeasuredCell], snapshots: Snapshots) -> list[dict]:
    """Values, as records have them, with `cell`: predicted peaks of all cells, recorded peaks of
    snapshots."""
    found = []
    for cell in snapshots.cells:
        baselines = cell.summary.get("memory", {}).get("baselines") or {}
        recorded = {f"{name}_bytes": size for name, size in baselines.items()}
        recorded["peak_asked"] = snapshots.peaks.get(cell.name)
        place = {"cell": cell.name, "variant": "step", "mode": cell.place["mode"]}
        found += [place | {"quantity": name, "value": each} for name, each in recorded.items()]
    for cell in of_study(cells, "timing", "ladder", "memory"):
        found += _predicted_peaks(cell, snapshots)
    return [value for value in found if value["value"]]


def _predicted_peaks(cell: MeasuredCell, snapshots: Snapshots) -> Iterator[dict]:
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
            yield place | {"mode": mode, "value": moment.bytes + snapshots.workspace(cell, mode)}


def peak(rows: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """memory_peak with what the closed form predicts of each category. predicted: by
    predictions()."""
    by = ["cell", "category"]
    sums = predicted.groupby(by)["predicted"].sum()
    return rows.assign(predicted=rows[by].join(sums, on=by)["predicted"])


def with_formulas(rows: pd.DataFrame, snapshots: Snapshots) -> pd.DataFrame:
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
    return rows.assign(formula=mapped(tensors, snapshots.cells, formula, *columns))


def predictions(snapshots: Snapshots) -> pd.DataFrame:
    """memory_predicted: the contributions to each predicted peak, and sums beside what was
    recorded."""
    rows = []
    for cell in snapshots.cells:
        moment = snapshots.predicted(cell)
        for each in moment.contributions if moment else ():
            told = {"formula": each.formula, "predicted": each.bytes}
            rows.append(cell.key | vars(each) | told)
        rows += _items(cell, snapshots, moment)
    found = pd.DataFrame(rows, columns=TABLES["memory_predicted"].names)
    return found.astype({"measured": float}).dropna(subset=["predicted", "measured"], how="all")


def _items(cell: MeasuredCell, snapshots: Snapshots, moment: Peak | None) -> Iterator[dict]:
    """Sums, predicted and measured; of a model of one's own what follows from its parameters."""
    setup = setup_of(cell, cell.spec)
    flags = (setup.flags if setup else frozenset()) | MODES[cell.place["mode"]]
    own = _of_own_model(cell)
    measured: dict[str, float | None] = {name: snapshots.alive(cell, name) for name in own}
    measured["cast weights"] = snapshots.casts.get(cell.name)
    # What was saved until the memory ran out is not all.
    if cell.summary.get("memory", {}).get("recorded") != "warm-up":
        for name, part in zip(SAVED, PARTS, strict=True):
            measured[name] = snapshots.saved.get((cell.name, "activations", part))
    if cell.status()[0] == "ok":
        measured["peak"] = snapshots.peaks.get(cell.name)
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
            "measured": measured.get(name),
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
