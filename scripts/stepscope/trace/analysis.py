"""All tables of one trace."""

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from stepscope.recordings.limits import complaint

from . import (
    TraceError,
    cautions,
    device_tables,
    kineto,
    nsys_export,
    nsys_sqlite,
    phase_tables,
    range_tables,
    ranks,
    timeline,
    transfers,
)
from .attribution import attribute
from .events import Trace, together

_REPORTS = (".nsys-rep", ".qdrep")


@contextlib.contextmanager
def readable(path: Path) -> Iterator[Path]:
    """A file that read() reads without another program: the path itself, or for that time the
    export of a .nsys-rep.

    Raises TraceError with one line for what is no file.
    """
    if reason := complaint(path, "a trace"):
        raise TraceError(reason)
    if path.suffix in _REPORTS:
        with tempfile.TemporaryDirectory(prefix="stepscope-nsys-") as folder:
            exported = Path(folder) / "trace.sqlite"
            nsys_export.export(path, exported)
            yield exported
    else:
        yield path


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


# A rank's number in the name of a file: "trace-TP-3.json.gz", "rank_0.sqlite".
_RANK = re.compile(r"(?i)(rank|device|gpu|worker|tp|pp|dp|ep|cp)([-_. ]?)(\d{1,6})(?!\d)")


def are_ranks(traces: list[Trace], paths: list[Path]) -> bool:
    """Whether several traces are those of one run's ranks: they say so, or else their names differ
    in a rank's number alone."""
    told = [min(trace.ranks.values()) for trace in traces if trace.ranks]
    if told:
        return len(set(told)) == len(traces)
    names = {_RANK.sub(r"\1\2", path.name) for path in paths}
    return len(names) == 1 and len({path.name for path in paths}) == len(paths)


def of_ranks(traces: list[Trace]) -> Trace:
    """The traces of one run's ranks as one, by the clock of the first."""
    ordered = sorted(traces, key=lambda trace: min(trace.ranks.values(), default=0))
    return together(ranks.aligned(ordered))


def analyse(
    trace: Trace,
    phases: list[str] | None = None,
    layers: int | None = None,
    steps: int | None = None,
) -> dict[str, pd.DataFrame]:
    """Table name → table; seconds and counts are those of a step. The last seven are for programs
    that are none of ours.

    phases: names of the ranges that are phases (default: see phase_names.py). layers: blocks of the
    model. steps: of a process, if phases do not say it.
    """
    found = attribute(trace, phases, steps)
    of_phases, modules = phase_tables.phases(found), range_tables.modules(found)
    there = cautions.ranges(found, modules, of_phases)
    return {
        "phases": of_phases,
        "kernels": phase_tables.kernels(found, layers),
        "categories": phase_tables.categories(found),
        "gaps": device_tables.gaps(found),
        "modules": modules,
        "timeline": timeline.timeline(found),
        "warnings": cautions.warnings(found, len(there) > 0),
        "ranges": there,
        "processes": transfers.processes(found),
        **ranks.tables(found),
        "transfers": transfers.transfers(found),
    }
