"""All tables of one trace, and writing them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from stepscope.trace import (
    TraceError,
    attention,
    backward_modules,
    cautions,
    device_tables,
    kineto,
    memory_operations,
    nsys_export,
    nsys_sqlite,
    phase_tables,
    range_tables,
    timeline,
    transfers,
)
from stepscope.trace.attribution import Attribution, attribute
from stepscope.trace.events import GRAPH, KERNEL, MEMORY, MS, Trace
from stepscope.trace.table_names import COLUMNS, FURTHER, TABLES

_REPORTS = (".nsys-rep", ".qdrep")
MOST_TOLD = 3  # names of a phase


@contextlib.contextmanager
def readable(path: Path) -> Iterator[Path]:
    """A file that read() reads without another program: the path itself, or for that time the export of a .nsys-rep.

    Raises TraceError with one line for what is no file.
    """
    _require_file(path)
    if path.suffix in _REPORTS:
        with nsys_export.exported(path) as exported:
            yield exported
    else:
        yield path


def _require_file(path: Path) -> None:
    if not path.exists():
        raise TraceError(f"{path}: there is no such file")
    if path.is_dir():
        raise TraceError(f"{path} is a folder; give the file of a trace")
    if not path.is_file():
        raise TraceError(f"{path} is a pipe or a device; give the file of a trace")


def read(path: Path) -> Trace:
    """The trace in a file of Nsight Systems (.nsys-rep, .sqlite) or torch.profiler (.json, .json.gz).

    Raises TraceError with one line for anything else.
    """
    _require_file(path)
    if path.name.endswith((".json", ".json.gz")):
        return kineto.read(path)
    if path.suffix in _REPORTS:
        with nsys_export.exported(path) as exported:
            return nsys_sqlite.read(exported)
    if path.suffix in (".sqlite", ".db"):
        return nsys_sqlite.read(path)
    raise TraceError(f"{path}: give a trace that ends in .nsys-rep, .sqlite, .json or .json.gz")


def analyse(trace: Trace, phases: list[str] | None = None, layers: int | None = None) -> dict[str, pd.DataFrame]:
    """Table name → table. layers: blocks of the model, found from the attention ranges if they are there."""
    return _tables(attribute(trace, phases), layers)


def analyse_any(trace: Trace, phases: list[str] | None = None, layers: int | None = None) -> dict[str, pd.DataFrame]:
    """The same, and the tables for programs that are none of ours."""
    found = attribute(trace, phases)
    tables = _tables(found, layers)
    further = {
        "warnings": cautions.warnings(found),
        "ranges_there": cautions.ranges_there(found, tables["ranges"], tables["phases"]),
        "processes": transfers.processes(found),
        "communication": transfers.communication(found),
        "copies": transfers.copies(found),
        "synchronisations": transfers.synchronisations(found),
    }
    return tables | _declared(further, FURTHER)


def _tables(found: Attribution, layers: int | None) -> dict[str, pd.DataFrame]:
    layers = layers or attention.layers(found)
    of_phases, times = phase_tables.phases(found), range_tables.range_times(found)
    tables = {
        "phases": of_phases,
        "kernels": phase_tables.kernels(found, layers),
        "categories": phase_tables.categories(found),
        "memory_operations": memory_operations.memory_operations(found),
        "ranges": range_tables.ranges(found, times),
        "attention": attention.attention(found, times, of_phases),
        "busy": device_tables.busy(found),
        "api_gaps": device_tables.api_gaps(found),
        "api_calls": device_tables.api_calls(found),
        "modules": backward_modules.modules(found),
        "lines": device_tables.python_lines(found),
        "os_calls": device_tables.os_calls(found),
        "checks": checks(found, layers),
        "timeline": timeline.timeline(found),
    }
    return _declared(tables, COLUMNS)


def _declared(tables: dict[str, pd.DataFrame], columns: dict[str, tuple[str, ...]]) -> dict[str, pd.DataFrame]:
    """The tables with all their columns in the declared order."""
    for name, table in tables.items():
        assert set(table.columns) <= set(columns[name]), f"{name} has columns that are not declared"
    return {name: tables[name].reindex(columns=columns[name]) for name in columns}


def empty() -> dict[str, pd.DataFrame]:
    """The tables of a cell without a trace: columns and no rows."""
    return {name: pd.DataFrame(columns=COLUMNS[name]) for name in TABLES}


def checks(found: Attribution, layers: int | None) -> pd.DataFrame:
    """What the trace holds and whether the pieces add up, as rows `quantity, value`."""
    trace, durations = found.trace, found.durations
    kind = trace.operations["kind"].to_numpy()
    unlinked = found.launch < 0
    outside = found.innermost_phase < 0
    rows = {
        "tool": trace.tool,
        "tool_version": trace.version,
        "device_is_host": trace.device_is_host,
        "devices": "; ".join(f"{number}: {name}" for number, name in sorted(trace.devices.items())),
        "processes": _different(trace, "process"),
        "threads": _different(trace, "thread"),
        "steps": found.steps,
        "layers": layers or "",
        "phases": "; ".join(found.phases),
        "phases_by_other_names": "; ".join(taken_for(found)),
        "kernels": int((kind == KERNEL).sum()),
        "graphs_traced_as_a_whole": int((kind == GRAPH).sum()),
        "memory_operations": int((kind == MEMORY).sum()),
        "kernels_not_linked_to_a_launch": int((unlinked & (kind == KERNEL)).sum()),
        "operations_not_linked_to_a_launch": int(unlinked.sum()),
        "gpu_ms_not_linked_to_a_launch": durations[unlinked].sum() / MS,
        "operations_outside_every_phase": int(outside.sum()),
        "gpu_ms_total": durations.sum() / MS,
        "gpu_ms_in_phases": durations[~outside].sum() / MS,
        "gpu_ms_outside_every_phase": durations[outside].sum() / MS,
        "cuda_calls": 0 if trace.device_is_host else len(trace.calls),
        "ranges": len(trace.ranges),
        "ranges_cut_off_by_the_end": int(trace.ranges["cut"].sum()),
    }
    return pd.DataFrame({"quantity": list(rows), "value": list(rows.values())})


def taken_for(found: Attribution) -> list[str]:
    """`phase: names` for each phase whose ranges have another name in the file, at most three of them in full."""
    told = {phase: names for phase, names in found.taken.items() if names != [phase]}
    return [
        f"{phase}: {', '.join(names[:MOST_TOLD])}" + (f" and {len(names) - MOST_TOLD} more" * (len(names) > MOST_TOLD))
        for phase, names in told.items()
    ]


def _different(trace: Trace, what: str) -> int:
    """How many processes or threads made calls or opened ranges."""
    return len(np.union1d(trace.calls[what].unique(), trace.ranges[what].unique()))
