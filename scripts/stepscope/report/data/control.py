"""The run's control: unchanged cells that were measured twice, and what they seem to differ by."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd

from stepscope.axes import PHASES
from stepscope.report.kit.compare import Floors, by_fields, pairs, timed

POINT = by_fields("hardware", "size", "context", "batch", "precision", "mode", "attention", "compile", "optimizer")
COVERED = 0.95  # the share of the control's pairs that the floor is not below
MANY_PAIRS = round(1 / (1 - COVERED))  # with fewer the floor covers them all


@dataclass(frozen=True)
class ControlPair:
    """A series of a cell that was measured once more, at another time: the difference of the two logarithms."""

    hardware: str
    limited_by: str | None
    phase: str
    cells: tuple[str, str]
    medians: tuple[float, float]  # ms

    @property
    def difference(self) -> float:
        """As a difference of logarithms, 0 or more."""
        return abs(math.log(self.medians[0] / self.medians[1]))


def repeated(rows: Iterable[dict]) -> Iterator[tuple[dict, dict]]:
    """(row, that of its first run) of every cell that was measured once more."""
    return pairs(rows, "repeat", 1, POINT)


def covering(differences: Iterable[float]) -> float:
    """What all but one in twenty of these are at most; of fewer than twenty the largest."""
    ranked = sorted(differences)
    return ranked[math.ceil(COVERED * len(ranked)) - 1]


def control_pairs(timing: pd.DataFrame) -> list[ControlPair]:
    """Every phase of every repeated cell beside that of its first run, in the table's order."""
    return [] if timing.empty or "repeat" not in timing else control_pairs_of(timing.to_dict("records"))


def control_pairs_of(rows: Iterable[dict]) -> list[ControlPair]:
    """The same of the table's rows."""
    found = []
    for row, first in repeated(rows):
        for phase in PHASES:
            both = [timed(each, f"{phase}_") for each in (first, row)]
            if None not in both:
                names, medians = (first["cell"], row["cell"]), tuple(each.median for each in both)
                found.append(ControlPair(row["hardware"], both[0].limited_by, phase, names, medians))
    return found


def floors(timing: pd.DataFrame) -> Floors:
    """The floor of each class of cells: what all but one in twenty of the control's pairs differ by at most."""
    return floors_of(control_pairs(timing))


def floors_of(control: Iterable[ControlPair]) -> Floors:
    """The same of the control's pairs."""
    classes: dict[tuple[str, str | None], list[float]] = defaultdict(list)
    for pair in control:
        classes[pair.hardware, pair.limited_by].append(pair.difference)
    return Floors({which: covering(own) for which, own in classes.items()})
