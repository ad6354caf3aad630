"""What the rungs of a ladder compute, beside the first one."""

from collections.abc import Iterator

from stepscope.results import agreement
from stepscope.results.cells import MeasuredCell, precision_of


def values(cells: list[MeasuredCell]) -> Iterator[dict]:
    """How far each rung of a ladder computes another loss and other gradients than the first, as
    values of a record, with `cell`; inf: not a number."""
    for cell in cells:
        for name, check in _compared(cell).items():
            place = {"cell": cell.name, "variant": name, "mode": "step"}
            for quantity in ("difference", "loss_difference", "tolerance"):
                if check[quantity] is not None:
                    yield place | {"quantity": quantity, "value": check[quantity]}


def differing(cells: list[MeasuredCell]) -> list[str]:
    """A line for each rung of a ladder that computes another loss or other gradients than the
    first."""
    return [
        f"{cell.name}: {name} computes another loss or other gradients than the first variant"
        for cell in cells
        for name, check in _compared(cell).items()
        if not check["same"]
    ]


def _compared(cell: MeasuredCell) -> dict[str, dict]:
    """What each rung computed, compared with the first (agreement.compared)."""
    found = cell.summary.get("checks", {})
    rungs = [rung["name"] for rung in cell.spec.get("variants", [])]
    computed = {name: found.get(name, {}) for name in rungs}
    return agreement.compared(computed, {name: precision_of(cell, name) for name in rungs})
