"""Which cells of a plan are to be measured, and why: what their records say against what the plan expects."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stepscope.tables.cells import CellResult, read_cells

REASONS = ("missing", "failed", "spec", "code", "hardware", "damaged")
"""Never measured (or its trace is gone); ended without a result; another spec; other code; another machine or
software; files that are not those that were written."""


@dataclass(frozen=True)
class Stale:
    """Why a cell does not hold: one of REASONS, and that in one line."""

    why: str
    reason: str


def stale_cells(plan: Mapping, results: Path, parts: Mapping[str, str | None]) -> dict[str, Stale]:
    """Cell → why it does not hold, for the cells that are measured for this plan, in its order.

    parts: study → the folder that its cells have besides their record, such as `trace`.
    """
    found = {}
    for study in plan["studies"]:
        for cell in read_cells(plan, study, results, partial=True):
            measured = plan["machines"][cell.hardware]["how"] != "there"
            if measured and (stale := _stale(cell, parts[study])):
                found[cell.name] = stale
    return found


def _stale(cell: CellResult, part: str | None) -> Stale | None:
    gone = [name for name in ("samples.csv", part) if name and not (cell.folder / name).exists()]
    if gone and (cell.status == "measured" or cell.about == "damaged"):
        return Stale("missing", f"{gone[0]} is gone")
    return None if cell.status == "measured" else Stale(cell.about or cell.status, cell.reason)
