"""Draws the figures of one study, each as SVG, PNG and PDF, from the tables in a folder."""

import argparse
from pathlib import Path

from stepscope import files
from stepscope.config.studies import DRAWN
from stepscope.figures import figures_of, theme
from stepscope.tables.reader import Tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", required=True, type=Path, help="folder with <study>.csv and <study>_samples.csv")
    parser.add_argument("--out", required=True, type=Path, help="folder for the figures")
    arguments = parser.parse_args()
    with files.or_one_line(arguments.out):
        for section in DRAWN:
            tables = Tables(arguments.tables, list(dict.fromkeys([section.name, *section.reads])))
            for name, draw in figures_of(section.name, tables).items():
                theme.write(draw, tables, arguments.out, name)


if __name__ == "__main__":
    main()
