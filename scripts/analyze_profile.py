"""Analyse the trace of one profile cell: the tables of analyze_nsys.py, made by a job of their own.

So a better analysis measures nothing again. A cell without a trace (out of memory, unsupported)
gives an empty folder.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

from collections.abc import Callable
from pathlib import Path

from stepscope.recordings import program
from stepscope.recordings.program import Tables
from stepscope.trace import TraceError, analysis


def main() -> None:
    program.of_cell(__doc__, prepared, TraceError)


def prepared(record: dict, cell: Path) -> Callable[[], Tables]:
    """What makes the tables of a cell's trace; none where nothing was recorded."""
    name, phases = record["summary"]["trace"]["file"], _phases(record)
    # A phase of a step of one's own may come several times in a step, or not in each.
    rest = (phases, _blocks(record), record["spec"]["steps"] if phases else None)
    if name is None:
        return dict
    return lambda: analysis.analyse(analysis.read(cell / "trace" / Path(name).name), *rest)


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
