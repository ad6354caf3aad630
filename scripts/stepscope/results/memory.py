"""What the closed form says of memory, beside what snapshots recorded."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from stepscope.axes import PLAIN_STEP, modes_up_to
from stepscope.formulas import footprint, footprint_checkpoint, footprint_peak
from stepscope.formulas.footprint import Contribution, Setup
from stepscope.formulas.footprint_peak import Peak
from stepscope.results.cells import MeasuredCell
from stepscope.results.formula_of_tensor import formula_of
from stepscope.results.mapped import mapped
from stepscope.results.schema import TABLES

ITEM = "item"  # category of rows that compare a sum
WITH_BACKWARD = ("forward-backward", "step")
PARTS = {  # of what autograd saves: name of its sum, closed form
    "block": ("saved by a block", footprint.saved_by_block),
    "rest": ("saved outside the blocks", footprint.saved_outside),
}

_peak_bytes = functools.cache(footprint_checkpoint.peak_bytes)


class Snapshots:
    """The analyses of all recorded cells; tables as analyses.read() gives them.

    named, saved: bytes by cell, category and part (a `block`, or the `rest`): of tensors that the
    program knows by name, of those that autograd saved. peaks, casts: the most bytes by cell, in
    all and of cast weights.
    """

    def __init__(self, cells: list[MeasuredCell], tables: dict[str, pd.DataFrame]):
        self.cells = [cell for cell in cells if cell.place["study"] == "memory"]
        part = ["cell", "category", "part"]
        self.named = tables["memory_named"].groupby(part)["bytes"].sum().to_dict()
        self.saved = tables["memory_saved"].groupby(part)["bytes"].sum().astype(float).to_dict()
        self.peaks = tables["memory_summary"].groupby("cell")["peak"].max().astype(float).to_dict()
        self.casts = tables["memory_timeline"].groupby("cell")["cast_weights"].max().to_dict()
        self._workspaces: dict[tuple[str, str], int] = {}
        for cell in self.cells:
            key = cell.place["machine"], cell.place["mode"]
            own = self.named.get((cell.name, "workspace", "rest"), 0)
            self._workspaces[key] = max(self._workspaces.get(key, 0), own)

    def workspace(self, cell: MeasuredCell, mode: str) -> int:
        """Bytes that libraries hold, as recorded there, else in the machine's other cells of that
        mode."""
        others = self._workspaces.get((cell.place["machine"], mode), 0)
        return self.named.get((cell.name, "workspace", "rest"), others)

    def alive(self, cell: MeasuredCell, category: str) -> int | None:
        """Bytes of a category: those of a block as often as there are blocks, and of the rest."""
        own = cell.own_model.get("blocks") or {}
        blocks = cell.shape.num_layers if cell.shape else own.get("count") or 0
        block, rest = (self.named.get((cell.name, category, part)) for part in PARTS)
        return None if block is None and rest is None else (block or 0) * blocks + (rest or 0)

    def predicted(self, cell: MeasuredCell) -> Peak | None:
        """The moment of the peak in closed form; None for a model of one's own, a compiler or
        checkpoints."""
        setup = setup_of(cell, cell.spec)
        if setup is None or {"compile", "checkpoint"} & set(cell.spec):
            return None
        mode = cell.place["mode"]
        return footprint_peak.peak(setup, mode, self.workspace(cell, mode))


def setup_of(cell: MeasuredCell, spec: dict) -> Setup | None:
    """What the closed form needs of a spec, the cell's or a variant's; None without a shape, or for
    options of which it knows nothing."""
    if cell.shape is None:
        return None
    options = ("precision", "attention", "optimizer", "loss")
    values: dict[str, Any] = {name: spec.get(name, PLAIN_STEP[name]) for name in options}
    setup = Setup(cell.shape, spec["batch"], spec["context"], **values)
    return setup if setup.is_known else None


def values(cells: list[MeasuredCell], snapshots: Snapshots) -> list[dict]:
    """Values, as records have them, with `cell`: predicted peaks of all cells, recorded peaks of
    snapshots."""
    found = []
    for cell in cells:
        if cell.place["study"] in ("timing", "ladder", "memory"):
            found += [*_recorded(cell, snapshots), *_predicted_peaks(cell, snapshots)]
    return [value for value in found if value["value"]]


def _value(cell: MeasuredCell, quantity: str, number: float, **place: str) -> dict:
    """A value in bytes, of the cell's own variant and mode unless its place says another."""
    where = {"cell": cell.name, "variant": "step", "mode": cell.place["mode"]} | place
    return where | {"quantity": quantity, "unit": "B", "value": float(number)}


def _recorded(cell: MeasuredCell, snapshots: Snapshots) -> Iterator[dict]:
    """What a snapshot says of a cell of the memory study."""
    if cell.name in snapshots.peaks:
        yield _value(cell, "peak_asked", snapshots.peaks[cell.name])
    if cell.place["study"] == "memory":
        for name, size in (cell.summary.get("memory", {}).get("baselines") or {}).items():
            yield _value(cell, f"{name}_bytes", size or 0)


def _predicted_peaks(cell: MeasuredCell, snapshots: Snapshots) -> Iterator[dict]:
    """The closed form's peak of each variant and mode that the cell measures."""
    own = cell.place["mode"]
    lighter = {"ladder": ["step"], "memory": [own]}
    modes = lighter.get(cell.place["study"]) or modes_up_to(own)
    for variant in cell.spec.get("variants", [{"name": "step"}]):
        spec = cell.spec | variant
        setup = setup_of(cell, spec)
        # A compiler keeps what it likes: it has no closed form.
        if setup is None or spec.get("compile", "none") != "none":
            continue
        for mode in modes:
            every = spec.get("checkpoint", 0) if mode in WITH_BACKWARD else 0
            size = _peak_bytes(setup, mode, every) + snapshots.workspace(cell, mode)
            yield _value(cell, "peak_predicted", size, variant=variant["name"], mode=mode)


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
        parts = moment.contributions if moment else []
        rows += [cell.key | _contribution(each) for each in parts]
        rows += [cell.key | {"category": ITEM} | item for item in _items(cell, snapshots, moment)]
    found = pd.DataFrame(rows, columns=TABLES["memory_predicted"].names)
    return found.dropna(subset=["predicted", "measured"], how="all")


def _contribution(each: Contribution) -> dict:
    """The columns of memory_predicted, less those of the cell."""
    names = ("category", "module", "name", "count", "formula")
    return {"predicted": each.bytes, **{name: getattr(each, name) for name in names}}


def _items(cell: MeasuredCell, snapshots: Snapshots, moment: Peak | None) -> Iterator[dict]:
    """Sums, predicted and measured; of a model of one's own what follows from its parameters."""
    mode, setup = cell.place["mode"], setup_of(cell, cell.spec)
    own = _of_own_model(cell)

    def constant(name: str, formula: Callable[[Setup], Contribution]) -> dict:
        """What is there for all of the step: one contribution."""
        parts = [formula(setup)] if setup else None
        found = _item(name, parts, snapshots.alive(cell, name))
        return found if setup else found | {"predicted": own[name]}

    yield constant("parameters", footprint.parameters)
    if setup and setup.is_autocast:
        casts = snapshots.casts.get(cell.name)
        yield _item("cast weights", footprint.all_cast_weights(setup), casts)
    if mode in WITH_BACKWARD:
        yield constant("gradients", footprint.gradients)
    if mode == "step":
        yield constant("optimizer state", footprint.optimizer_state)
    # What was saved until the memory ran out is not all.
    is_cut_off = cell.summary.get("memory", {}).get("recorded") == "warm-up"
    for part, (name, formula) in PARTS.items() if mode != "inference" else ():
        saved = snapshots.saved.get((cell.name, "activations", part))
        yield _item(name, formula(setup) if setup else None, None if is_cut_off else saved)
    recorded = snapshots.peaks.get(cell.name) if cell.status()[0] == "ok" else None
    found = _item("peak", moment.contributions if moment else None, recorded)
    yield found | {"module": moment.part if moment else ""}


def _item(name: str, parts: list[Contribution] | None, measured: float | None) -> dict:
    """A row. parts: of the closed form."""
    formulas = dict.fromkeys(each.formula for each in parts or ())
    return {
        "name": name,
        "module": "",
        "predicted": None if parts is None else footprint.total(parts),
        "measured": measured,
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
        "optimizer state": 2 * trained or None,
    }
