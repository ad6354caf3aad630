"""What the timing study's control says to the other studies: what unchanged cells differ by beyond their processes."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

from stepscope.tables.columns import BetweenCells
from stepscope.tables.timing import PHASES


def between_cells(timing: Path) -> BetweenCells:
    """The `spread_cells` of each class of series in timing.csv, with its degrees of freedom.

    Raises OSError where it cannot be read.
    """
    with timing.open(newline="", encoding="utf-8") as file:
        return between_cells_of(csv.DictReader(file))


def between_cells_of(timing: Iterable[Mapping]) -> BetweenCells:
    """The same of the rows of that table."""
    found: dict[tuple[str, str | None], tuple[float, int]] = {}
    for row in timing:
        for name in PHASES:
            if (deviation := row[f"{name}_spread_cells"]) not in ("", None):
                found[row["hardware"], row[f"{name}_limited_by"] or None] = (
                    float(deviation),
                    int(row[f"{name}_spread_cells_degrees"]),
                )
    return found
