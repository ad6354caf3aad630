"""The profile study's tables: a row a cell, every host-clock sample, and the analyses of all traces put together."""

import csv
import io
from pathlib import Path

from stepscope.plan.axes import NEUTRAL
from stepscope.tables.cells import CellResult, machine_columns, statistics_columns, write_tables
from stepscope.tables.training import KEY, SAMPLES, place_columns
from stepscope.trace.table_names import COLUMNS, TABLES

PHASES = ("inference", "forward", "backward", "optimizer")


def write(cells: list[CellResult], noisy: float | None, folder: Path) -> None:
    """Write profile.csv, profile_samples.csv and profile_NAME.csv for each table of an analysis.

    A measured cell whose analysis is missing or damaged has no rows in these, and is `failed` with the reason.
    """
    analyses = [read_analysis(cell) for cell in cells]
    rows = [row(cell, noisy, lost) for cell, (_, lost) in zip(cells, analyses, strict=True)]
    keys = [[line[name] for name in KEY] for line in rows]
    samples = ((key, cell.samples[1:]) for key, cell in zip(keys, cells, strict=True))
    write_tables(folder, "profile", rows, KEY + SAMPLES, samples)
    for name in TABLES:
        text = _together(name, [tables.get(name, []) for tables, _ in analyses], keys)
        beside = folder / f".profile_{name}.csv.part"
        beside.write_text(text, encoding="utf-8")
        beside.rename(folder / f"profile_{name}.csv")


def row(cell: CellResult, noisy: float | None, lost: str = "") -> dict:
    """One cell as one row: its place in the grid, status, profiler, host-clock times (ms) of the profiled phases.

    lost: why its analysis cannot be used.
    """
    spec, summary = cell.entry["spec"], cell.record.get("summary", {"modes": {}, "phases": []})
    mode = summary["modes"].get(spec.get("mode", NEUTRAL["mode"]), {})
    series = {entry["phase"]: entry for entry in summary["phases"] if entry["status"] == "ok"}
    trace = summary.get("trace") or {}
    columns: dict = {
        **place_columns(cell),
        "steps": spec["steps"],
        "status": "failed" if lost else mode.get("status", cell.status),
        "reason": lost or mode.get("reason") or cell.reason,
        "profiler": trace.get("profiler"),
        "profiler_version": trace.get("version"),
        "profiler_options": trace.get("options"),
        "trace": f"results/{cell.name}/trace/{trace['file']}" if trace.get("file") else None,
    }
    for phase in PHASES:
        columns |= statistics_columns(f"{phase}_", series.get(phase, {}), noisy)
    for name in ("peak_allocated_bytes", "peak_reserved_bytes", "peak_resident_bytes"):
        columns[name] = mode.get(name)
    log = None if cell.status == "missing" else f"results/{cell.name}/measure.log"
    return columns | machine_columns(cell.record) | {"command": cell.entry["command"], "log": log}


def read_analysis(cell: CellResult) -> tuple[dict[str, list[list[str]]], str]:
    """(table name -> its rows, why the analysis cannot be used); no rows of a cell that was not measured."""
    if cell.status != "measured":
        return {}, ""
    if not isinstance(cell.record["summary"].get("trace"), dict):
        return {}, "record.json says nothing of the trace (edited by hand); measure the cell again"
    if not (cell.folder / "analysis").is_dir():
        return {}, "measured, but the trace is not analysed yet"
    tables = {}
    for name in TABLES:
        try:
            tables[name] = _rows(cell.folder / "analysis" / f"{name}.csv", list(COLUMNS[name]))
        except (OSError, ValueError, csv.Error):
            again = f"delete results/{cell.name}/analysis and run again"
            return {}, f"analysis/{name}.csv is missing, damaged or of another version; {again}"
    return tables, ""


def _rows(path: Path, columns: list[str]) -> list[list[str]]:
    """The rows of a CSV file. Raises ValueError if it has other columns, or ends too early."""
    text = path.read_text(encoding="utf-8")
    header, *rows = [*csv.reader(io.StringIO(text, newline=""), strict=True)] or [[]]
    if header != columns or not text.endswith("\n") or any(len(row) != len(columns) for row in rows):
        raise ValueError
    return rows


def _together(name: str, tables: list[list[list[str]]], keys: list[list]) -> str:
    """One table of all cells' analyses, each row after its cell's key."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*KEY, *COLUMNS[name]])
    for key, rows in zip(keys, tables, strict=True):
        writer.writerows([*key, *row] for row in rows)
    return text.getvalue()
