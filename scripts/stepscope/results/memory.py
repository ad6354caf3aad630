"""What the closed form says of memory, beside what snapshots recorded."""

import functools
from collections.abc import Callable, Iterator

import pandas as pd

from stepscope.axes import PLAIN_STEP, modes_up_to
from stepscope.formulas import footprint, footprint_checkpoint, footprint_peak
from stepscope.formulas.footprint import Contribution, Setup
from stepscope.formulas.footprint_peak import Peak
from stepscope.model.shape import ModelShape
from stepscope.results.cells import MeasuredCell
from stepscope.results.formula_of_tensor import formula_of
from stepscope.results.mapped import mapped

ITEM = "item"  # category of rows that compare a sum


class Snapshots:
    """The analyses of all recorded cells; tables as analyses.read() gives them."""

    def __init__(self, cells: list[MeasuredCell], tables: dict[str, pd.DataFrame]):
        self.cells = [cell for cell in cells if cell.place["study"] == "memory" and cell.record]
        self._by = {
            name: dict(iter(frame.groupby("cell")))
            for name, frame in tables.items()
            if name.startswith("memory_")
        }
        known = {cell.name: self.named(cell, "workspace", "rest") for cell in self.cells}
        self._workspaces: dict[tuple, int] = {}
        for cell in self.cells:
            key = (cell.place["machine"], cell.place["mode"])
            self._workspaces[key] = max(self._workspaces.get(key, 0), known[cell.name] or 0)

    def of(self, name: str, cell: MeasuredCell) -> pd.DataFrame:
        """A cell's rows of one table; empty where there are none."""
        return self._by[name].get(cell.name, pd.DataFrame())

    def named(self, cell: MeasuredCell, category: str, part: str) -> int | None:
        """Bytes of the tensors that the program knows by name: of a `block`, or of the `rest`."""
        rows = self.of("memory_named", cell)
        own = rows[(rows["category"] == category) & (rows["part"] == part)] if len(rows) else rows
        return int(own["bytes"].sum()) if len(own) else None

    def workspace(self, cell: MeasuredCell, mode: str) -> int:
        """Bytes that libraries hold, as recorded there, else in the machine's other cells of that
        mode."""
        own = self.named(cell, "workspace", "rest") if cell.place["study"] == "memory" else None
        return self._workspaces.get((cell.place["machine"], mode), 0) if own is None else own

    def predicted(self, cell: MeasuredCell) -> Peak | None:
        """The moment of the peak in closed form; None for a model of one's own, a compiler or
        checkpoints."""
        setup = setup_of(cell.shape, cell.spec)
        is_plain = not {"compile", "checkpoint"} & set(cell.spec)
        if setup is None or not is_plain:
            return None
        mode = cell.place["mode"]
        return footprint_peak.peak(setup, mode, self.workspace(cell, mode))


def setup_of(shape: ModelShape | None, spec: dict) -> Setup | None:
    """What the closed form needs of a spec, a cell's or a variant's; None without a shape, or for
    options of which it knows nothing."""
    if shape is None:
        return None
    options = ("precision", "attention", "optimizer", "loss")
    values = {name: str(spec.get(name, PLAIN_STEP[name])) for name in options}
    setup = Setup(shape, spec["batch"], spec["context"], **values)
    return setup if setup.is_known else None


def values(cells: list[MeasuredCell], snapshots: Snapshots) -> list[dict]:
    """Values, as records have them, with `cell`: predicted peaks of all cells, recorded peaks of
    snapshots."""
    found = []
    for cell in cells:
        if cell.record and cell.place["study"] in ("timing", "ladder", "memory"):
            found += [*_recorded(cell, snapshots), *_predicted_peaks(cell, snapshots)]
    return [value for value in found if value["value"]]


def _value(cell: MeasuredCell, quantity: str, bytes_: float | None, **place: str) -> dict:
    where = {"variant": "step", "mode": cell.place["mode"], "process": None} | place
    number = {"unit": "B", "value": float(bytes_ or 0)}
    return {"cell": cell.name, **where, "quantity": quantity, **number}


def _recorded(cell: MeasuredCell, snapshots: Snapshots) -> Iterator[dict]:
    """What a snapshot says of a cell of the memory study."""
    if cell.place["study"] != "memory":
        return
    summary = snapshots.of("memory_summary", cell)
    if len(summary):
        yield _value(cell, "peak_asked", summary["peak"].max())
    for name, size in (cell.summary.get("memory", {}).get("baselines") or {}).items():
        yield _value(cell, f"{name}_bytes", size)


def _predicted_peaks(cell: MeasuredCell, snapshots: Snapshots) -> Iterator[dict]:
    """The closed form's peak of each variant and mode that the cell measures."""
    own = cell.place["mode"]
    lighter = {"ladder": ["step"], "memory": [own]}
    modes = lighter.get(cell.place["study"]) or modes_up_to(own)
    for variant in cell.spec.get("variants", [{"name": "step"}]):
        for mode in modes:
            size = _peak_bytes(cell, variant, mode, snapshots.workspace(cell, mode))
            yield _value(cell, "peak_predicted", size, variant=variant["name"], mode=mode)


def _peak_bytes(cell: MeasuredCell, variant: dict, mode: str, workspace: int) -> int | None:
    """A compiler keeps what it likes: it has no closed form."""
    options = {key: value for key, value in variant.items() if key not in ("name", "after")}
    spec = cell.spec | options
    setup = setup_of(cell.shape, spec)
    if setup is None or spec.get("compile", "none") != "none":
        return None
    return _bytes(setup, mode, spec.get("checkpoint", 0)) + workspace


@functools.cache
def _bytes(setup: Setup, mode: str, every: int) -> int:
    has_backward = mode in ("forward-backward", "step")
    return footprint_checkpoint.peak_bytes(setup, mode, every if has_backward else 0)


def peak(rows: pd.DataFrame, snapshots: Snapshots) -> pd.DataFrame:
    """memory_peak with what the closed form predicts of each category."""
    predicted: dict[tuple[str, str], int] = {}
    for cell in snapshots.cells:
        moment = snapshots.predicted(cell)
        for each in moment.contributions if moment else ():
            place = cell.name, each.category
            predicted[place] = predicted.get(place, 0) + each.bytes
    if not predicted:
        return rows.assign(predicted=None)
    places = pd.MultiIndex.from_frame(rows[["cell", "category"]])
    return rows.assign(predicted=pd.Series(predicted, dtype=float).reindex(places).to_numpy())


def with_formulas(rows: pd.DataFrame, snapshots: Snapshots) -> pd.DataFrame:
    """memory_largest or memory_saved with the formula of one tensor's bytes, where one is found."""
    setups = {cell.name: setup_of(cell.shape, cell.spec) for cell in snapshots.cells}
    counts = rows["tensors"] if "tensors" in rows else pd.Series(1, rows.index)
    tensors = rows.assign(bytes=rows["bytes"] // counts)

    def formula(cell: str, size: float, shape: object, dtype: str, category: str) -> str:
        setup = setups.get(cell)
        if setup is None or not isinstance(shape, str):
            return ""
        dims = tuple(map(int, shape.split("×")))
        return formula_of(setup, int(size), dims, dtype, category) or ""

    columns = ["cell", "bytes", "shape", "dtype", "category"]
    return rows.assign(formula=mapped(tensors, columns, formula))


def predictions(snapshots: Snapshots) -> list[dict]:
    """memory_predicted: the contributions to each predicted peak, and sums beside what was
    recorded."""
    rows = []
    for cell in snapshots.cells:
        key = {"machine": cell.place["machine"], "cell": cell.name}
        moment = snapshots.predicted(cell)
        rows += [key | _contribution(each) for each in (moment.contributions if moment else ())]
        rows += [key | {"category": ITEM} | item for item in _items(cell, snapshots, moment)]
    return rows


def _contribution(each: Contribution) -> dict:
    return {
        "category": each.category,
        "module": each.module,
        "name": each.name,
        "count": each.count,
        "predicted": each.bytes,
        "formula": each.formula,
    }


def _items(cell: MeasuredCell, snapshots: Snapshots, moment: Peak | None) -> Iterator[dict]:
    """Sums, predicted and measured; of a model of one's own what follows from its parameters."""
    mode, setup = cell.place["mode"], setup_of(cell.shape, cell.spec)
    alive, own = _alive(cell, snapshots), _of_own_model(cell)

    def constant(name: str, formula: Callable[[Setup], Contribution]) -> Iterator[dict]:
        """What is there for all of the step: one contribution."""
        parts = [formula(setup)] if setup else None
        yield from _item(name, parts, alive(name), own.get(name))

    yield from constant("parameters", footprint.parameters)
    if setup and setup.is_autocast:
        timeline = snapshots.of("memory_timeline", cell)
        casts = timeline["cast_weights"].max() if len(timeline) else None
        yield from _item("cast weights", footprint.all_cast_weights(setup), casts)
    if mode in ("forward-backward", "step"):
        yield from constant("gradients", footprint.gradients)
    if mode == "step":
        yield from constant("optimizer state", footprint.optimizer_state)
    if mode != "inference":
        block, rest = _saved(cell, snapshots)
        of_block = footprint.saved_by_block(setup) if setup else None
        outside = footprint.saved_outside(setup) if setup else None
        yield from _item("saved by a block", of_block, block)
        yield from _item("saved outside the blocks", outside, rest)
    summary = snapshots.of("memory_summary", cell)
    is_whole = len(summary) and cell.status()[0] == "ok"
    recorded = float(summary["peak"].max()) if is_whole else None
    parts, part = (moment.contributions, moment.part) if moment else (None, "")
    yield from _item("peak", parts, recorded, module=part)


def _item(
    name: str,
    parts: list[Contribution] | None,
    measured: float | None,
    predicted: int | None = None,
    module: str = "",
) -> Iterator[dict]:
    """A row, if either is known. parts: of the closed form; predicted: what stands in for their
    sum."""
    whole = predicted if parts is None else footprint.total(parts)
    formulas = dict.fromkeys(each.formula for each in parts or ())
    if whole is not None or measured is not None:
        yield {
            "name": name,
            "module": module,
            "predicted": whole,
            "measured": measured,
            # A sum of more is longer than a reader takes in.
            "formula": " + ".join(formulas) if len(formulas) < 4 else "",
        }


def _of_own_model(cell: MeasuredCell) -> dict[str, int | None]:
    """Bytes of its parameters in their own types: AdamW keeps two moments of each that it trains.
    A record of before has their numbers alone, all in fp32."""
    own = cell.own_model
    numbers = (own.get("parameters") or 0, own.get("trainable_parameters") or 0)
    every = own.get("parameters_bytes", 4 * numbers[0])
    trained = own.get("trained_bytes", 4 * numbers[1])
    return {
        "parameters": every or None,
        "gradients": trained or None,
        "optimizer state": 2 * trained or None,
    }


def _alive(cell: MeasuredCell, snapshots: Snapshots) -> Callable[[str], int | None]:
    """Bytes of a category: those of a block as often as there are blocks, and of the rest."""
    own_blocks = (cell.own_model.get("blocks") or {}).get("count") or 0
    blocks = cell.shape.num_layers if cell.shape else own_blocks

    def alive(category: str) -> int | None:
        block, rest = (snapshots.named(cell, category, part) for part in ("block", "rest"))
        return None if block is None and rest is None else (block or 0) * blocks + (rest or 0)

    return alive


def _saved(cell: MeasuredCell, snapshots: Snapshots) -> tuple[float | None, float | None]:
    """Bytes of activations that autograd saved in a block, and outside of all; None where memory
    ran out before the recording's end."""
    rows = snapshots.of("memory_saved", cell)
    if cell.summary.get("memory", {}).get("recorded") == "warm-up" or not len(rows):
        return None, None
    activations = rows[rows["category"] == "activations"]
    by = {part: float(own["bytes"].sum()) for part, own in activations.groupby("part")}
    return by.get("block"), by.get("rest")
