"""What the programs for anybody's files do alike: analyse within limits, write all tables, draw,
and print the summary; whatever goes wrong is one line."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from stepscope import files

from . import limits
from .tables import write_tables
from .text import plain, show

Tables = dict[str, pd.DataFrame]
Contents = dict[Path, bytes | list[str]]
TEMPLATES = Path(__file__).resolve().parents[3] / "report"
SIDES = ("before", "after")  # folders of the two recordings that are compared
_MOST_OF_A_LINE = 1000  # characters


def run(
    given: argparse.Namespace,
    paths: list[Path],
    named: list[Path],
    analyse: Callable[[], tuple[Mapping[str, Tables], str]],
    draw: Callable[[Tables], Contents],
    failure: type[Exception],
) -> None:
    """Write what a program makes of the files at `paths`, which the user knows as `named`, to the
    folder given.out, and print it.

    analyse: gives the tables of each folder below it, and the summary; draw: from the tables of the
    folder itself, files that need the report's libraries. failure: the
    exception whose message is a line for the user.
    """
    together = " and ".join(map(str, named))
    try:
        there = [path for path in paths if path.is_file()]  # what reads a missing one tells so
        most = limits.limits_for(there, given.most_seconds, given.most_gigabytes)
        made, text = limits.within(most, together, analyse, (failure, OSError))
        for folder, tables in made.items():
            write_tables(tables, given.out / folder)
        files.write_whole({given.out / "summary.md": [text]})
        drawn = limits.within(most, together, lambda: draw(made[""]), ())
        files.write_whole(drawn)
    except OSError as error:
        sys.exit(plain(f"error: {files.complaint(error, given.out)}", _MOST_OF_A_LINE))
    except (failure, limits.LimitError) as error:
        sys.exit(f"error: {plain(error, _MOST_OF_A_LINE)}")
    show(text)


def of_cell(
    description: str | None,
    prepare: Callable[[dict, Path], Callable[[], Tables]],
    failure: type[Exception],
) -> None:
    """Write the tables of what a cell has recorded, by a program's flags.

    prepare: from the cell's record and folder to what makes its tables. failure: as for `run`.
    """
    flags = argparse.ArgumentParser(description=description)
    flags.add_argument(
        "--cell", type=Path, required=True, metavar="DIR", help="folder of the record and recording"
    )
    flags.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder for the tables"
    )
    given = flags.parse_args()
    path = given.cell / "record.json"
    try:
        analyse = prepare(json.loads(path.read_text()), given.cell)
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"error: {path} is missing or damaged ({error}); measure the cell again")
    try:
        tables = analyse()
    except failure as error:
        sys.exit(f"error: {error}")
    with files.or_one_line(given.out):
        write_tables(tables, given.out)
    print(f"{sum(map(len, tables.values())):,} rows in {len(tables)} tables")
