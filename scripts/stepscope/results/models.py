"""models.csv: what was built, a row for each model, context and batch of a machine; and its
operations."""

from stepscope.formulas import flops
from stepscope.results.cells import MeasuredCell

FORMULA, COUNTER = "formula", "counter"


def flop(cell: MeasuredCell, mode: str) -> float | None:
    """Operations of a step of the cell's model in a mode: of a size in closed form, else by
    chosen(); None if unknown.

    Forward is a third of forward and backward, as in flops.backward_flops(), where the record does
    not say it: weights that are frozen have no gradient.
    """
    whole: float | None
    if cell.shape is None:
        whole = chosen(cell.own_model.get("flops") or {})[0]
    else:
        whole = flops.step_flops(cell.shape, cell.spec["batch"], cell.spec["context"])
    if mode not in ("inference", "forward") or not whole:
        return whole
    return (cell.own_model.get("flops") or {}).get("forward") or whole / 3


def chosen(found: dict) -> tuple[float | None, str]:
    """(operations of a forward and a backward pass, FORMULA or COUNTER) of a model of one's own;
    (None, "") if unknown.

    PyTorch's counter knows what the model really multiplies, but nothing of kernels that are not
    PyTorch's: where it did not see attention, the record has the formula under `from`.
    """
    order = (FORMULA, COUNTER) if found.get("from") == FORMULA else (COUNTER, FORMULA)
    return next(((found[name], name) for name in order if found.get(name)), (None, ""))


def rows(cells: list[MeasuredCell]) -> list[dict]:
    """In the cells' order; of several cells at one place, that with the fewest options tells."""
    found: dict[tuple, MeasuredCell] = {}
    for cell in sorted(cells, key=lambda each: each.name.count("=")):
        if cell.record and "context" in cell.spec and (cell.shape or cell.own_model):
            place = cell.place
            key = (place["machine"], place["size"], place["context"], place["batch"])
            found.setdefault(key, cell)
    chosen = {cell.name for cell in found.values()}
    return [_row(cell) for cell in cells if cell.name in chosen]


def _row(cell: MeasuredCell) -> dict:
    place = {name: cell.place[name] for name in ("machine", "size", "context", "batch")}
    if cell.shape:
        names = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size", "parameters")
        of_shape = {name: getattr(cell.shape, name) for name in names}
        of_shape |= {"key_value_heads": cell.shape.key_value_heads}
        of_shape |= {"trained": cell.shape.parameters, "dtype": "float32"}
        return place | of_shape | {"flop": flop(cell, "step"), "flop_from": FORMULA}
    own = cell.own_model
    whole, source = chosen(own.get("flops") or {})
    said = ("vocab_size", "parameters", "reference", "class", "inputs", "loss")
    found = {
        "num_layers": (own.get("blocks") or {}).get("count"),
        "flop": whole,
        "flop_from": source,
        "trained": own.get("trainable_parameters"),
        "dtype": (own.get("dtype") or "").replace("torch.", ""),
        "unknown": "; ".join(map(str, own.get("unknown") or [])),
    }
    return place | found | {name: own.get(name) for name in said}
