"""Analyse the snapshot of one memory cell: the tables of analyze_snapshot.py, made by a job of
their own.

So a better analysis measures nothing again. A cell without a snapshot (unsupported) gives an empty
folder.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import argparse
import json
import sys
from pathlib import Path

from stepscope import files
from stepscope.recordings.tables import write_tables
from stepscope.snapshot import SnapshotError, analysis


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument(
        "--cell",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder with record.json and snapshot/",
    )
    flags.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder for the tables"
    )
    given = flags.parse_args()
    try:
        record = json.loads((given.cell / "record.json").read_text())
        name = record["summary"]["memory"]["snapshot"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(
            f"error: {given.cell / 'record.json'} is missing or damaged ({error}); measure the cell"
            " again"
        )
    try:
        tables = (
            {} if name is None else analysis.analyse_file(given.cell / "snapshot" / Path(name).name)
        )
    except SnapshotError as error:
        sys.exit(f"error: {error}")
    with files.or_one_line(given.out):
        write_tables(tables, given.out)
    print(f"{sum(map(len, tables.values())):,} rows in {len(tables)} tables")


if __name__ == "__main__":
    main()
