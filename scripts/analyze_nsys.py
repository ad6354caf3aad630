"""Which kernels ran, launched by what, in which phase: the tables of a trace, without a profiler's window.

Works on any trace of Nsight Systems, of any program (.nsys-rep needs nsys on the PATH, .sqlite needs nothing), and on
those of torch.profiler (.json, .json.gz). Writes a CSV a table and summary.md, and prints the summary. Kernels belong
to the phase in which they were launched, by whatever thread of the process: the backward pass has its own.
"""

import argparse
import sys
from pathlib import Path

from stepscope import files
from stepscope.trace import TraceError, analysis, summary


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("trace", type=Path, metavar="TRACE", help="trace.nsys-rep, .sqlite, .json or .json.gz")
    flags.add_argument(
        "--phases",
        metavar="NAME,…",
        help="names of the ranges that are phases (default: step, inference, forward, loss, backward, optimizer, "
        "as far as the trace has them; else its outermost ranges)",
    )
    flags.add_argument(
        "--layers", type=int, metavar="N", help="blocks of the model (default: found from its attention ranges)"
    )
    flags.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the tables")
    given = flags.parse_args()
    phases = [name.strip() for name in given.phases.split(",") if name.strip()] if given.phases else None
    if given.layers is not None and given.layers < 1:
        flags.error(f"--layers {given.layers} is too small; use at least 1")
    if phases == []:
        flags.error(f"--phases {given.phases!r} names no range; omit it for the default")
    try:
        trace = analysis.read(given.trace)
        ranges = {trace.names[code] for code in trace.ranges["name"].unique()}
        missing = [name for name in phases or [] if name not in ranges]
        if missing:
            raise TraceError(
                f"{given.trace}: there is no range named {missing[0]!r}; omit --phases to see those it has"
            )
        tables = analysis.analyse(trace, phases, given.layers)
        text = summary.markdown(tables, f"Trace {given.trace.name}")
    except TraceError as error:
        sys.exit(f"error: {error}")
    with files.or_one_line(given.out):
        analysis.write(tables, given.out)
        files.write_whole({given.out / "summary.md": [text]})
    sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show every name
    print(text)


if __name__ == "__main__":
    main()
