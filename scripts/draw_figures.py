"""Draws the report's figures as SVG from the tables in a folder; what has no rows is not drawn."""

from stepscope.machine.process import die_with_starter

die_with_starter()

import argparse
from pathlib import Path

from stepscope import files
from stepscope.figures import NAMES, draw_all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tables",
        required=True,
        type=Path,
        help="folder of series.csv, cells.csv and the other tables",
    )
    parser.add_argument("--out", required=True, type=Path, help="folder for the figures")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        choices=NAMES,
        metavar="NAME",
        help="of: " + ", ".join(NAMES),
    )
    given = parser.parse_args()
    with files.or_one_line(given.out):
        drawn = draw_all(given.tables, given.out, given.only)
    names = ", ".join(drawn) or "none has anything to show"
    print(f"{len(drawn)} figures in {given.out}: {names}")


if __name__ == "__main__":
    main()
