"""Which kernels ran, launched by what, in which phase: the tables of a trace, without a profiler's
window.

Works on any trace of Nsight Systems, of any program (.nsys-rep needs nsys on the PATH, .sqlite
needs nothing), and on those of torch.profiler (.json, .json.gz). Writes a CSV a table and
summary.md, and prints the summary. Kernels belong to the phase in which they were launched, by
whatever thread of the process: the backward pass has its own. Of two traces the first one is
compared with the second: what grew, shrank, came and went. Traces of the ranks of one run, which
say so themselves, or given with --ranks, are taken apart together: who waits for whom.
"""

import argparse
import contextlib
import sys
from pathlib import Path

from stepscope.recordings import program
from stepscope.recordings.flags import add_limits, add_out
from stepscope.recordings.program import SIDES, TEMPLATES, Contents, Tables
from stepscope.recordings.text import plain
from stepscope.trace import TraceError, analysis, cautions, comparison, phase_names, summary
from stepscope.trace.events import Trace


def main() -> None:
    given = arguments()
    try:
        with contextlib.ExitStack() as stack:
            paths = [stack.enter_context(analysis.readable(path)) for path in given.traces]
            program.run(
                given,
                paths,
                given.traces,
                lambda: analysed(paths, given),
                lambda tables: page_of(tables, given),
                TraceError,
            )
    except TraceError as error:  # a file that is missing, or cannot be exported
        sys.exit(f"error: {plain(error, 1000)}")


def arguments() -> argparse.Namespace:
    """The flags; `wanted` are the names of phases, or None for the default."""
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument(
        "traces",
        type=Path,
        nargs="*",
        metavar="TRACE",
        help="trace.nsys-rep, .sqlite, .json or .json.gz; one, two to compare, or all of one run",
    )
    flags.add_argument(
        "--ranks",
        type=Path,
        nargs="*",
        metavar="TRACE",
        help=(
            "these (and those before) are the ranks of one run (default: where the files say so, or"
            " their names differ in a rank's number alone)"
        ),
    )
    flags.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="steps of each process in the trace (default: how often its optimizer ran)",
    )
    flags.add_argument(
        "--phases",
        metavar="NAME,…",
        help=(
            "names of the ranges that are phases (default: all whose name means a step, inference,"
            " forward, loss, backward or optimizer, such as 'forward pass'; else the outermost"
            " ranges)"
        ),
    )
    flags.add_argument(
        "--phase",
        action="append",
        default=[],
        metavar="NAME",
        help="one such name, which may hold commas; repeat it",
    )
    flags.add_argument(
        "--layers",
        type=int,
        metavar="N",
        help="blocks of the model: kernels.csv then says what runs in each",
    )
    add_out(flags)
    add_limits(flags)
    given = flags.parse_args()
    given.traces += given.ranks or []
    if not given.traces:
        flags.error("no trace is given; give one, two to compare, or all ranks of a run")
    for name in ("layers", "steps"):
        value = getattr(given, name)
        if value is not None and value < 1:
            flags.error(f"--{name} {value} is too small; use at least 1")
    names = [name.strip() for name in (given.phases or "").split(",") if name.strip()] + given.phase
    if given.phases is not None and not names:
        flags.error(f"--phases {given.phases!r} names no range; omit it for the default")
    given.wanted = names or None
    return given


def page_of(tables: Tables, given: argparse.Namespace) -> Contents:
    """The page as HTML, if it is wanted."""
    if not given.html:
        return {}
    from stepscope.report import recordings  # needs what the report needs, and seconds to load

    title = " and ".join(path.name for path in given.traces)
    return {given.html: [recordings.of_trace(tables, title, TEMPLATES)]}


def analysed(traces: list[Path], given: argparse.Namespace) -> tuple[dict[str, Tables], str]:
    """(folder below --out → its tables, the summary)."""
    named = [path.name for path in given.traces]
    found = [analysis.read(path) for path in traces]
    if len(found) > 1 and (given.ranks is not None or analysis.are_ranks(found, given.traces)):
        tables = tables_of(analysis.of_ranks(found), " and ".join(named), given)
        return {"": tables}, summary.markdown(tables, f"Ranks {', '.join(named)}")
    sides = [tables_of(trace, name, given) for trace, name in zip(found, named, strict=True)]
    if len(sides) == 1:
        return {"": sides[0]}, summary.markdown(sides[0], f"Trace {named[0]}")
    if len(sides) > 2:
        raise TraceError(
            f"{len(sides)} traces are given, which do not say that they are the ranks of one run;"
            " give --ranks if they are, else one, or two to compare"
        )
    both = {"compared": comparison.compared(*sides)}
    title = f"{named[0]} (before) and {named[1]} (after)"
    return {"": both, **dict(zip(SIDES, sides, strict=True))}, summary.markdown(both, title)


def tables_of(trace: Trace, named: str, given: argparse.Namespace) -> Tables:
    """The tables of one trace. Raises TraceError if it has nothing to analyse, or not the phases
    that are wanted."""
    cautions.require_operations(trace, named)
    there = phase_names.available(trace)
    for name in given.wanted or []:
        if name not in there:
            raise TraceError(
                f"{named}: there is no range named {name!r}; omit --phases to see those it has"
            )
    return analysis.analyse(trace, given.wanted, given.layers, given.steps)


if __name__ == "__main__":
    main()
