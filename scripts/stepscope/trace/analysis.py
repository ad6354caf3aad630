"""All tables of one trace."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from stepscope.trace import (
    TraceError,
    attention,
    cautions,
    device_tables,
    kineto,
    nsys_export,
    nsys_sqlite,
    phase_tables,
    range_tables,
    timeline,
    transfers,
)
from stepscope.trace.attribution import attribute
from stepscope.trace.events import Trace

_REPORTS = (".nsys-rep", ".qdrep")


@contextlib.contextmanager
def readable(path: Path) -> Iterator[Path]:
    """A file that read() reads without another program: the path itself, or for that time the
    export of a .nsys-rep.

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
    """The trace in a file of Nsight Systems (.nsys-rep, .sqlite) or torch.profiler (.json,
    .json.gz).

    Raises TraceError with one line for anything else.
    """
    with readable(path) as found:
        if found.name.endswith((".json", ".json.gz")):
            return kineto.read(found)
        if found.suffix in (".sqlite", ".db"):
            return nsys_sqlite.read(found)
    raise TraceError(f"{path}: give a trace that ends in .nsys-rep, .sqlite, .json or .json.gz")


def analyse(
    trace: Trace, phases: list[str] | None = None, layers: int | None = None
) -> dict[str, pd.DataFrame]:
    """Table name → table; seconds and counts are those of a step. The last five are for programs
    that are none of ours.

    phases: names of the ranges that are phases (default: see phase_names.py). layers: blocks of the
    model, found from the attention ranges if they are there.
    """
    found = attribute(trace, phases)
    of_phases, modules = phase_tables.phases(found), range_tables.modules(found)
    return {
        "phases": of_phases,
        "kernels": phase_tables.kernels(found, layers or attention.layers(found)),
        "categories": phase_tables.categories(found),
        "gaps": device_tables.gaps(found),
        "modules": modules,
        "timeline": timeline.timeline(found),
        "warnings": cautions.warnings(found),
        "ranges": cautions.ranges(found, modules, of_phases),
        "processes": transfers.processes(found),
        "communication": transfers.communication(found),
        "transfers": transfers.transfers(found),
    }
