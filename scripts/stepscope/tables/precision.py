"""The precision study's tables: a row a probe, what each probe found, and the sums after every addition."""

import csv
import io
from pathlib import Path

from stepscope.tables.cells import CellResult
from stepscope.tables.precision_names import COLUMNS, PARTS, SAMPLES
from stepscope.tables.writing import machine_columns, write_tables, write_whole

KEY = ["cell", "hardware", "probe"]


def write(cells: list[CellResult], folder: Path) -> None:
    """Write precision.csv, precision_samples.csv and precision_NAME.csv for each table of precision_names."""
    rows = [row(cell) for cell in cells]
    samples = (([line[name] for name in KEY], cell.samples[1:]) for line, cell in zip(rows, cells, strict=True))
    write_tables(folder, "precision", rows, [*KEY, *SAMPLES], samples)
    for name in COLUMNS:
        _write(folder / f"precision_{name}.csv", ["cell", "hardware", *COLUMNS[name]], rows_of(name, cells))


def row(cell: CellResult) -> dict:
    """One cell: which probe, its status, and what it ran on."""
    found = cell.record.get("summary", {})
    return {
        "cell": cell.name,
        "hardware": cell.name.split("/")[0],
        "probe": cell.entry["spec"]["probe"],
        "precision": cell.entry["spec"]["precision"],
        "seed": cell.entry["spec"]["seed"],
        "status": found.get("status", cell.status),
        "reason": found.get("reason", cell.reason),
        **machine_columns(cell.record),
        "command": cell.entry["command"],
        "log": None if cell.status == "missing" else f"results/{cell.name}/measure.log",
    }


def rows_of(name: str, cells: list[CellResult]) -> list[dict]:
    """The rows of one table, of all cells; what a cell ran of our model says which model that was."""
    found = []
    for cell in cells:
        tables = cell.record.get("summary", {}).get("tables", {})
        key = {"cell": cell.name, "hardware": cell.name.split("/")[0]}
        model = {each: value for each, value in cell.entry["spec"].items() if each in COLUMNS[name]}
        for part, more in PARTS[name].items():
            of_model = {} if part == "toy" else model
            found += [{**key, **of_model, **more, **entry} for entry in tables.get(part, [])]
    return found


def _write(path: Path, columns: list[str], rows: list[dict]) -> None:
    """Write a table; numbers in full, what is missing as an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    write_whole({path: [text.getvalue()]})
