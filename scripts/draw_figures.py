"""Draws the figures of one study, each as SVG, PNG and PDF, from the tables in a folder."""

import argparse
from pathlib import Path

from stepscope import files
from stepscope.figures import figures_of, theme
from stepscope.tables.reader import Tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True, help="the study whose figures are drawn, such as timing")
    parser.add_argument(
        "--with",
        action="append",
        default=[],
        dest="others",
        metavar="STUDY",
        help="a study whose tables the figures compare with, if they are there; repeat for several",
    )
    parser.add_argument("--tables", required=True, type=Path, help="folder with <study>.csv and <study>_samples.csv")
    parser.add_argument("--out", required=True, type=Path, help="folder for the figures")
    arguments = parser.parse_args()
    with files.or_one_line(arguments.out):
        tables = Tables(arguments.tables, list(dict.fromkeys([arguments.study, *arguments.others])))
        for name, draw in figures_of(arguments.study, tables).items():
            theme.write(draw, tables, arguments.out, name)


if __name__ == "__main__":
    main()
