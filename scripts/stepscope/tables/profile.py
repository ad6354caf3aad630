"""The profile study's tables: a row a cell, every host-clock sample, and the analyses of all traces put together."""

from pathlib import Path

from stepscope.axes import NEUTRAL
from stepscope.tables.analyses import read_analysis, write_together
from stepscope.tables.cells import CellResult
from stepscope.tables.training import KEY, SAMPLES, place_columns
from stepscope.tables.writing import machine_columns, statistics_columns, write_tables
from stepscope.trace.table_names import COLUMNS, TABLES

PHASES = ("inference", "forward", "backward", "optimizer")


def write(cells: list[CellResult], folder: Path) -> None:
    """Write profile.csv, profile_samples.csv and profile_NAME.csv for each table of an analysis.

    A measured cell whose analysis is missing or damaged has no rows in these, and is `failed` with the reason.
    """
    analyses = [read_analysis(cell, COLUMNS, "trace") for cell in cells]
    rows = [row(cell, lost) for cell, (_, lost) in zip(cells, analyses, strict=True)]
    keys = [[line[name] for name in KEY] for line in rows]
    samples = ((key, cell.samples[1:]) for key, cell in zip(keys, cells, strict=True))
    write_tables(folder, "profile", rows, KEY + SAMPLES, samples)
    for name in TABLES:
        found = [tables.get(name, []) for tables, _ in analyses]
        write_together(folder / f"profile_{name}.csv", list(COLUMNS[name]), keys, found)


def row(cell: CellResult, lost: str = "") -> dict:
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
        columns |= statistics_columns(f"{phase}_", series.get(phase, {}), cell.noisy)
    for name in ("peak_allocated_bytes", "peak_reserved_bytes", "peak_resident_bytes"):
        columns[name] = mode.get(name)
    log = None if cell.status == "missing" else f"results/{cell.name}/measure.log"
    return columns | machine_columns(cell.record) | {"command": cell.entry["command"], "log": log}
