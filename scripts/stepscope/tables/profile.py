"""The profile study's tables: a row a cell, every host-clock sample, and the analyses of all traces put together."""

from pathlib import Path

from stepscope.axes import NEUTRAL
from stepscope.config import recordings
from stepscope.tables.cells import CellResult, read_analysis
from stepscope.tables.columns import REASON, RUN, STATISTICS, STATUS, run_columns, statistics_columns
from stepscope.tables.profile_fields import ANALYSES
from stepscope.tables.schema import Group, Table, text
from stepscope.tables.training import (
    KEY,
    PEAKS,
    PLACE,
    SAMPLES,
    STEPS,
    keys_of,
    peak_columns,
    place_columns,
    status_of,
    summary_of,
)
from stepscope.tables.writer import write_analyses, write_study
from stepscope.trace.table_names import COLUMNS

PHASES = ("inference", "forward", "backward", "optimizer")
STUDY = (
    Table(
        "profile",
        "a cell",
        (
            *(PLACE, STEPS),
            text("detail", "what nsys recorded beside `kernels`: ranges of `autograd`, or lines of `python`"),
            *(STATUS, REASON),
            text("profiler", "what profiled: `nsys` or `torch`"),
            text("profiler_version", "its version"),
            text("profiler_options", "its options"),
            text("trace", "the trace, from the working directory"),
            Group("phase", STATISTICS.members, {f"{phase}_": f"{phase}, while profiled" for phase in PHASES}),
            *PEAKS,
            RUN,
        ),
    ),
    Table("profile_samples", "a phase of a step", (KEY, SAMPLES)),
)
TABLES = (*STUDY, *ANALYSES.values())


def write(cells: list[CellResult], folder: Path) -> None:
    """Write profile.csv, profile_samples.csv and profile_NAME.csv for each table of an analysis.

    A measured cell whose analysis is missing or damaged has no rows in these, and is `failed` with the reason.
    """
    analyses = [read_analysis(cell, COLUMNS, "trace") for cell in cells]
    rows = [row(cell, lost) for cell, (_, lost) in zip(cells, analyses, strict=True)]
    keys = keys_of(rows)
    write_study(folder, STUDY, rows, cells, keys)
    for name, table in ANALYSES.items():
        write_analyses(folder, table, keys, [tables.get(name, []) for tables, _ in analyses])


def row(cell: CellResult, lost: str = "") -> dict:
    """One cell as one row: its place in the grid, status, profiler, host-clock times (ms) of the profiled phases.

    lost: why its analysis cannot be used.
    """
    spec, summary = cell.entry["spec"], summary_of(cell)
    mode = summary["modes"].get(spec.get("mode", NEUTRAL["mode"]), {})
    series = {entry["phase"]: entry for entry in summary["phases"] if entry["status"] == "ok"}
    trace = summary.get("trace") or {}
    columns = {
        **place_columns(cell),
        "steps": spec["steps"],
        "detail": recordings.recorded(cell.name, "detail"),
        **status_of(cell, mode, lost),
        "profiler": trace.get("profiler"),
        "profiler_version": trace.get("version"),
        "profiler_options": trace.get("options"),
        "trace": f"results/{cell.name}/trace/{trace['file']}" if trace.get("file") else None,
    }
    for phase in PHASES:
        columns |= statistics_columns(f"{phase}_", series.get(phase, {}))
    return columns | peak_columns(mode) | run_columns(cell)
