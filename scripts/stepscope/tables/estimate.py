"""What the plan expected of each cell before the run that measured it. Written when the run begins."""

import csv
from collections.abc import Collection, Iterable
from pathlib import Path

from stepscope.config.estimate import SAID, UNKNOWN, Estimate
from stepscope.tables.columns import CELL, HARDWARE
from stepscope.tables.schema import Table, number, text
from stepscope.tables.writer import write_table

TABLE = Table(
    "estimate",
    "a cell, as the last run that measured it expected it to be",
    (
        CELL,
        HARDWARE,
        text("study", "the study that it is of"),
        text("basis", "; ".join([*(f"`{name}`: {words}" for name, words in SAID.items()), f"`{UNKNOWN}`: none"])),
        number("expected_s", "s", "how long it was expected to run; `duration_s` is how long it ran"),
        number("peak_bytes", "bytes", "peak memory by the closed form; empty where there is none"),
        number("recorded_bytes", "bytes", "expected size of its trace or snapshot"),
    ),
)


def write(found: Iterable[Estimate], planned: Collection[str], folder: Path) -> None:
    """Write estimate.csv. Rows of an earlier run stay, of cells that are still planned and not estimated now."""
    rows = {one.cell.name: row(one) for one in found}
    kept = {line["cell"]: line for line in read(folder) if line["cell"] in planned}
    write_table(folder, TABLE, (kept | rows).values())


def row(one: Estimate) -> dict:
    """One cell as one row."""
    return {
        "cell": one.cell.name,
        "hardware": one.cell.label,
        "study": one.cell.study,
        "basis": one.basis,
        "expected_s": None if one.seconds is None else round(one.seconds, 3),
        "peak_bytes": one.peak or None,
        "recorded_bytes": one.recorded,
    }


def read(folder: Path) -> list[dict]:
    """The rows of estimate.csv as text; none where it is missing or of another version."""
    try:
        with (folder / f"{TABLE.name}.csv").open(encoding="utf-8", newline="") as lines:
            table = csv.DictReader(lines)
            return [*table] if table.fieldnames == TABLE.columns else []
    except (OSError, ValueError, csv.Error):
        return []
