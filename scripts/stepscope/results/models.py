"""models.csv: what was built, a row for each model, context and batch of a machine; and its
operations."""

import dataclasses

import numpy as np
from pandas import DataFrame

from stepscope.config.own_models import keys_of
from stepscope.formulas import flops

from .cells import MeasuredCell
from .tables import typed

PLACE = ["machine", "size", "context", "batch"]
FORMULA, COUNTER, GIVEN = "formula", "counter", "given"
AT_LEAST = "at least"  # some operators multiply and have no formula


def flop(cell: MeasuredCell, mode: str) -> float:
    """Operations of a step of the cell's model in a mode: of a size in closed form, else by
    chosen(); NaN if unknown.

    Forward is a third of forward and backward, as in flops.step_flops(), where the record does
    not say it: weights that are frozen have no gradient.
    """
    own = cell.own_model.get("flops") or {}
    whole = chosen(own)[0]
    if cell.shape:
        whole = flops.step_flops(cell.shape, cell.spec["batch"], cell.spec["context"])
    if mode not in ("inference", "forward"):
        return whole
    return own.get("forward") or whole / 3


def chosen(found: dict) -> tuple[float, str]:
    """(operations of a forward and a backward pass, COUNTER) of a model of one's own, those of a
    whole step of one's own, which may be GIVEN; (NaN, "") if unknown."""
    return next(((found[name], name) for name in (GIVEN, COUNTER) if found.get(name)), (np.nan, ""))


def rows(cells: list[MeasuredCell]) -> DataFrame:
    """In the cells' order; of several cells at one place, that with the fewest options tells."""
    built = [cell for cell in cells if "context" in cell.spec and (cell.shape or cell.own_model)]
    made = typed(DataFrame([_row(cell) for cell in built]), "models")
    plainest = np.argsort([cell.name.count("=") for cell in built], kind="stable")
    return made.iloc[plainest].drop_duplicates(PLACE).sort_index()


def _row(cell: MeasuredCell) -> dict:
    """Columns of a model's row; place and shape have more, which the table does not take."""
    if cell.shape:
        of_shape = dataclasses.asdict(cell.shape) | {"parameters": cell.shape.parameters}
        found = {"trained": cell.shape.parameters, "dtype": "float32", "flop_from": FORMULA}
        found |= {"flop": flop(cell, "step"), "forward_flop": flop(cell, "forward")}
        return cell.place | of_shape | found
    own = cell.own_model
    flops_of_own = own.get("flops") or {}
    whole, source = chosen(flops_of_own)
    if source == COUNTER and flops_of_own.get("uncounted"):
        source = AT_LEAST
    found = {
        "num_layers": (own.get("blocks") or {}).get("count"),
        "flop": whole,
        "flop_from": source,
        "forward_flop": flops_of_own.get("forward"),
        # none where the step does not show what holds them
        "parameters": own.get("parameters") or None,
        "trained": own.get("trainable_parameters") if own.get("parameters") else None,
        "dtype": (own.get("dtype") or "").replace("torch.", ""),
        "items": own.get("items"),
        "item": own.get("item"),
        "keys": ", ".join(f"{key}: {value}" for key, value in keys_of(cell.spec).items()),
        "unknown": "; ".join(map(str, own.get("unknown") or [])),
    }
    return cell.place | own | found
