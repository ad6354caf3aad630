"""The profile study's tables: a row a cell, every host-clock sample, and the analyses of all traces put together."""

import csv
import io
from pathlib import Path

from stepscope.model.shape import ModelShape
from stepscope.plan.axes import NEUTRAL
from stepscope.tables.cells import CellResult, machine_columns, statistics_columns, write_tables
from stepscope.trace.table_names import TABLES

KEY = ["cell", "hardware", "size", "context", "precision", "repeat"]
SAMPLES = ["mode", "kind", "step", "phase", "warmup", "seconds", "event_seconds"]
SAMPLES += ["sm_clock_mhz", "power_w", "temperature_c"]
PHASES = ("inference", "forward", "backward", "optimizer")


def write(cells: list[CellResult], noisy: float | None, folder: Path) -> None:
    """Write profile.csv, profile_samples.csv and profile_NAME.csv for each table of an analysis."""
    rows = [row(cell, noisy) for cell in cells]
    keys = [[line[name] for name in KEY] for line in rows]
    samples = ((key, cell.samples[1:]) for key, cell in zip(keys, cells, strict=True))
    write_tables(folder, "profile", rows, KEY + SAMPLES, samples)
    for name in TABLES:
        text = _together(name, cells, keys)
        beside = folder / f".profile_{name}.csv.part"
        beside.write_text(text, encoding="utf-8")
        beside.rename(folder / f"profile_{name}.csv")


def row(cell: CellResult, noisy: float | None) -> dict:
    """One cell as one row: its place in the grid, status, profiler, host-clock times (ms) of the profiled phases."""
    spec, summary = cell.entry["spec"], cell.record.get("summary", {"modes": {}, "phases": []})
    names = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")
    shape = ModelShape(**{name: spec[name] for name in names})
    mode = summary["modes"].get(spec.get("mode", NEUTRAL["mode"]), {})
    series = {entry["phase"]: entry for entry in summary["phases"] if entry["status"] == "ok"}
    trace = summary.get("trace", {})
    columns: dict = {
        "cell": cell.name,
        "hardware": cell.name.split("/")[0],
        "size": cell.entry["size"],
        **{key: spec[key] for key in ("context", "batch", "precision")},
        **{key: spec.get(key, neutral) for key, neutral in NEUTRAL.items()},
        **{name: spec[name] for name in names},
        "parameters": shape.parameters,
        "seed": spec["seed"],
        "warmup": spec["warmup"],
        "steps": spec["steps"],
        "status": mode.get("status", cell.status),
        "reason": mode.get("reason") or cell.reason,
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


def _together(name: str, cells: list[CellResult], keys: list[list]) -> str:
    """One table of all cells' analyses, each row after its cell's key; a cell without an analysis has no rows."""
    columns: list[str] = []
    parts = []
    for cell, key in zip(cells, keys, strict=True):
        path = cell.folder / "analysis" / f"{name}.csv"
        if cell.status != "measured" or not path.is_file():
            continue
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            columns += [column for column in reader.fieldnames or [] if column not in columns]
            parts.append((key, list(reader)))
    text = io.StringIO()
    writer = csv.DictWriter(text, [*KEY, *columns], lineterminator="\n", restval="")
    writer.writeheader()
    for key, rows in parts:
        writer.writerows(dict(zip(KEY, key, strict=True)) | line for line in rows)
    return text.getvalue()
