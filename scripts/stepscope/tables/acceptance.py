"""Accepting an edit of the code as one that changes no number: the records keep the digest that measured them.

An accepted digest stands beside it in `record.json`, under `accepted`, with its date and reason.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from stepscope.files import write_whole
from stepscope.tables.cells import accepted_codes, read_cells


@dataclass(frozen=True)
class Edited:
    """A cell whose code was edited since it was measured, and that agrees with the plan in all else."""

    name: str
    measured: str
    now: str


def edited_cells(plan: dict, results: Path) -> tuple[list[Edited], dict[str, str]]:
    """(cells whose code alone differs from the plan's, cell → why it cannot be accepted).

    Cells that are not there, and those of which nothing is measured here, are in neither.
    """
    edited, refused = [], {}
    for study, part in plan["studies"].items():
        now = {entry["cell"]: entry["code"] for entry in part["cells"]}
        records = {name: _record(results / name) for name in now}
        stale = [
            entry | {"code": records[entry["cell"]]["code"]}
            for entry in part["cells"]
            if records[entry["cell"]] and entry["code"] not in accepted_codes(records[entry["cell"]])
        ]
        here = [one for one in stale if plan["machines"][one["cell"].partition("/")[0]]["how"] != "there"]
        as_measured = plan | {"studies": plan["studies"] | {study: part | {"cells": here}}}
        for cell in read_cells(as_measured, study, results, partial=True):
            if cell.status == "measured":
                edited.append(Edited(cell.name, cell.record["code"], now[cell.name]))
            else:
                refused[cell.name] = cell.reason
    return edited, refused


def accepted_before(plan: dict, results: Path) -> list[str]:
    """Cells that hold for today's code because an edit was accepted."""
    entries = [entry for part in plan["studies"].values() for entry in part["cells"]]
    records = [(entry, _record(results / entry["cell"])) for entry in entries]
    return [
        entry["cell"]
        for entry, record in records
        if record and record["code"] != entry["code"] and entry["code"] in accepted_codes(record)
    ]


def accept(cell: Edited, results: Path, date: str, reason: str) -> None:
    """Add the digest of today's code to the cell's record, whole or not at all. Raises OSError."""
    path = results / cell.name / "record.json"
    record = json.loads(path.read_text())
    record.setdefault("accepted", []).append({"code": cell.now, "date": date, "reason": reason})
    write_whole({path: [json.dumps(record, indent=1, sort_keys=True) + "\n"]}, to_disk=True)


def _record(folder: Path) -> dict:
    """A cell's record; {} where it is missing or damaged, which read_cells() reports when the tables are made."""
    try:
        record = json.loads((folder / "record.json").read_text())
        accepted_codes(record)
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return record
