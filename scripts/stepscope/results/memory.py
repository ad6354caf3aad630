"""What the closed form says of memory, beside what snapshots recorded."""

import functools

import pandas as pd

from stepscope.axes import PLAIN_STEP, modes_up_to
from stepscope.formulas import footprint, footprint_checkpoint, footprint_peak
from stepscope.formulas.footprint import Contribution, Setup
from stepscope.formulas.footprint_peak import Peak
from stepscope.results.cells import MeasuredCell
from stepscope.results.formula_of_tensor import formula_of

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
        mode = cell.place["mode"]
        return (
            footprint_peak.peak(setup, mode, self.workspace(cell, mode))
            if setup and is_plain
            else None
        )


def setup_of(shape, spec: dict) -> Setup | None:
    """What the closed form needs of a spec, a cell's or a variant's; None without a shape, or for
    options of which it knows nothing."""
    options = ("precision", "attention", "optimizer", "loss")
    values = {name: spec.get(name, PLAIN_STEP[name]) for name in options}
    setup = shape and Setup(shape, spec["batch"], spec["context"], **values)
    return setup if setup and setup.is_known else None


def values(cells: list[MeasuredCell], snapshots: Snapshots) -> list[dict]:
    """Values, as records have them, with `cell`: predicted peaks of all cells, recorded peaks of
    snapshots."""
    found = []

    def add(
        cell: MeasuredCell,
        quantity: str,
        number: float | None,
        variant: str = "step",
        mode: str | None = None,
    ) -> None:
        if number:
            place = {
                "cell": cell.name,
                "variant": variant,
                "mode": mode or cell.place["mode"],
                "process": None,
            }
            found.append(place | {"quantity": quantity, "unit": "B", "value": float(number)})

    for cell in cells:
        study = cell.place["study"]
        if not cell.record or study not in ("timing", "ladder", "memory"):
            continue
        if study == "memory":
            summary = snapshots.of("memory_summary", cell)
            add(cell, "peak_asked", summary["peak"].max() if len(summary) else None)
            for name, size in (cell.summary.get("memory", {}).get("baselines") or {}).items():
                add(cell, f"{name}_bytes", size)
        for variant in cell.spec.get("variants", [{"name": "step"}]):
            for mode in ["step"] if study == "ladder" else modes_up_to(cell.place["mode"]):
                if study != "memory" or mode == cell.place["mode"]:
                    size = _peak_bytes(cell, variant, mode, snapshots.workspace(cell, mode))
                    add(cell, "peak_predicted", size, variant["name"], mode)
    return found


def _peak_bytes(cell: MeasuredCell, variant: dict, mode: str, workspace: int) -> int | None:
    """A compiler keeps what it likes: it has no closed form."""
    spec = cell.spec | {
        key: value for key, value in variant.items() if key not in ("name", "after")
    }
    setup = setup_of(cell.shape, spec)
    if setup is None or spec.get("compile", "none") != "none":
        return None
    return _bytes(setup, mode, spec.get("checkpoint", 0)) + workspace


@functools.cache
def _bytes(setup: Setup, mode: str, every: int) -> int:
    if every and mode not in ("forward-backward", "step"):
        every = 0
    return footprint_checkpoint.peak_bytes(setup, mode, every)


def peak(rows: pd.DataFrame, snapshots: Snapshots) -> pd.DataFrame:
    """memory_peak with what the closed form predicts of each category."""
    predicted = {
        (cell.name, category): size
        for cell in snapshots.cells
        if (moment := snapshots.predicted(cell))
        for category, size in _by_category(moment.contributions).items()
    }
    places = pd.MultiIndex.from_frame(rows[["cell", "category"]])
    return rows.assign(
        predicted=(
            pd.Series(predicted, dtype=float).reindex(places).to_numpy() if predicted else None
        )
    )


def _by_category(contributions: list[Contribution]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in contributions:
        found[each.category] = found.get(each.category, 0) + each.bytes
    return found


def with_formulas(rows: pd.DataFrame, snapshots: Snapshots) -> pd.DataFrame:
    """memory_largest or memory_saved with the formula of one tensor's bytes, where one is found."""
    setups = {cell.name: setup_of(cell.shape, cell.spec) for cell in snapshots.cells}
    counts = rows["tensors"] if "tensors" in rows else pd.Series(1, rows.index)
    columns = zip(
        rows["cell"],
        rows["bytes"] // counts,
        rows["shape"],
        rows["dtype"],
        rows["category"],
        strict=True,
    )
    return rows.assign(formula=[_formula(setups.get(cell), *tensor) for cell, *tensor in columns])


@functools.cache
def _formula(setup: Setup | None, size: float, shape: object, dtype: str, category: str) -> str:
    if setup is None or not isinstance(shape, str):
        return ""
    return formula_of(setup, int(size), tuple(map(int, shape.split("×"))), dtype, category) or ""


def predictions(snapshots: Snapshots) -> list[dict]:
    """memory_predicted: the contributions to each predicted peak, and sums beside what was
    recorded."""
    rows = []
    for cell in snapshots.cells:
        key = {"machine": cell.place["machine"], "cell": cell.name}
        moment = snapshots.predicted(cell)
        for each in moment.contributions if moment else []:
            named = {
                "category": each.category,
                "module": each.module,
                "name": each.name,
                "count": each.count,
            }
            rows.append(key | named | {"predicted": each.bytes, "formula": each.formula})
        rows += [key | {"category": ITEM} | item for item in _items(cell, snapshots, moment)]
    return rows


def _items(cell: MeasuredCell, snapshots: Snapshots, moment: Peak | None) -> list[dict]:
    """Sums, predicted and measured; of a model of one's own what follows from its parameters."""
    mode, own = cell.place["mode"], cell.own_model
    blocks = cell.shape.num_layers if cell.shape else (own.get("blocks") or {}).get("count") or 0
    found: list[dict] = []

    def known(category: str) -> int | None:
        """Bytes of a category: of a block as often as there are blocks, and of the rest."""
        block, rest = (snapshots.named(cell, category, part) for part in ("block", "rest"))
        return None if block is None and rest is None else (block or 0) * blocks + (rest or 0)

    def item(
        name: str,
        predicted: list[Contribution] | int | None,
        measured: float | None,
        module: str = "",
    ) -> None:
        whole = footprint.total(predicted) if isinstance(predicted, list) else predicted
        formulas = (
            dict.fromkeys(each.formula for each in predicted) if isinstance(predicted, list) else {}
        )
        formula = " + ".join(formulas) if len(formulas) < 4 else ""
        if whole is not None or measured is not None:
            found.append(
                {
                    "name": name,
                    "module": module,
                    "predicted": whole,
                    "measured": measured,
                    "formula": formula,
                }
            )

    setup = setup_of(cell.shape, cell.spec)
    trained = own.get("trainable_parameters")
    item("parameters", [footprint.parameters(setup)] if setup else own.get("parameters") and 4 * own["parameters"],
         known("parameters"))  # fmt: skip
    if setup and setup.is_autocast:
        timeline = snapshots.of("memory_timeline", cell)
        item(
            "cast weights",
            footprint.all_cast_weights(setup),
            timeline["cast_weights"].max() if len(timeline) else None,
        )
    if mode in ("forward-backward", "step"):
        item(
            "gradients",
            [footprint.gradients(setup)] if setup else trained and 4 * trained,
            known("gradients"),
        )
    if mode == "step":
        state = [footprint.optimizer_state(setup)] if setup else trained and 8 * trained
        item("optimizer state", state, known("optimizer state"))
    if mode != "inference":
        is_whole = (
            cell.summary.get("memory", {}).get("recorded") != "warm-up"
        )  # else memory ran out before its end
        saved = snapshots.of("memory_saved", cell) if is_whole else pd.DataFrame()
        block, rest = (_saved(saved, part) for part in ("block", "rest"))
        item("saved by a block", footprint.saved_by_block(setup) if setup else None, block)
        item("saved outside the blocks", footprint.saved_outside(setup) if setup else None, rest)
    summary = snapshots.of("memory_summary", cell)
    recorded = float(summary["peak"].max()) if len(summary) and cell.status()[0] == "ok" else None
    item("peak", moment.contributions if moment else None, recorded, moment.part if moment else "")
    return found


def _saved(rows: pd.DataFrame, part: str) -> float | None:
    """Bytes of activations that autograd saved in a block, or outside of all."""
    own = rows[(rows["part"] == part) & (rows["category"] == "activations")] if len(rows) else rows
    return float(own["bytes"].sum()) if len(own) else None
