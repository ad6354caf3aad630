"""Analyse the snapshot of one memory cell: the tables of analyze_snapshot.py, made by a job of
their own.

So a better analysis measures nothing again. A cell without a snapshot (unsupported) gives an empty
folder.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

from collections.abc import Callable
from functools import partial
from pathlib import Path

from stepscope.recordings import program
from stepscope.recordings.program import Tables
from stepscope.snapshot import SnapshotError, analysis


def main() -> None:
    program.of_cell(__doc__, prepared, SnapshotError)


def prepared(record: dict, cell: Path) -> Callable[[], Tables]:
    """What makes the tables of a cell's snapshot; none where nothing was recorded."""
    name = record["summary"]["memory"]["snapshot"]
    return partial(analysis.analyse_file, cell / "snapshot" / Path(name).name) if name else dict


if __name__ == "__main__":
    main()
