"""Analyse the trace of one profile cell: the tables of analyze_nsys.py, made by a job of their own.

So a better analysis measures nothing again. A cell without a trace (out of memory, unsupported)
gives an empty folder.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import argparse
import json
import sys
from pathlib import Path

from stepscope import files
from stepscope.recordings.tables import write_tables
from stepscope.trace import TraceError, analysis


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument(
        "--cell", type=Path, required=True, metavar="DIR", help="folder with record.json and trace/"
    )
    flags.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder for the tables"
    )
    given = flags.parse_args()
    try:
        record = json.loads((given.cell / "record.json").read_text())
        name, layers = record["summary"]["trace"]["file"], _blocks(record)
        phases = _phases(record)
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(
            f"error: {given.cell / 'record.json'} is missing or damaged ({error}); measure the cell"
            " again"
        )
    try:
        tables = {}
        if name is not None:
            trace = analysis.read(given.cell / "trace" / Path(name).name)
            # A phase of a step of one's own may come several times in a step, or not in each.
            steps = record["spec"]["steps"] if phases else None
            tables = analysis.analyse(trace, phases, layers, steps)
    except TraceError as error:
        sys.exit(f"error: {error}")
    with files.or_one_line(given.out):
        write_tables(tables, given.out)
    print(f"{sum(map(len, tables.values())):,} rows in {len(tables)} tables")


def _phases(record: dict) -> list[str] | None:
    """Those that a step of one's own marks, whatever it calls them; None of any other."""
    built = record["summary"].get("built")
    return ["step", *built["step"]["marked"]] if built else None


def _blocks(record: dict) -> int | None:
    """How many blocks the cell's model has; None of one's own that has none."""
    if "num_layers" in record["spec"]:
        return record["spec"]["num_layers"]
    summary = record["summary"]
    own = summary.get("model") or summary.get("built", {}).get("step") or {}
    return (own.get("blocks") or {}).get("count")


if __name__ == "__main__":
    main()
