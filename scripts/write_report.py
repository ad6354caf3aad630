"""Writes the report, index.html, report.md and facts.json, from tables and figures."""

import argparse
import sys
from pathlib import Path

from stepscope.files import or_one_line
from stepscope.report.book import ReportError, Request, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", required=True, type=Path, help="folder with series.csv and the other tables")
    parser.add_argument("--figures", required=True, type=Path, help="folder with the drawn figures")
    parser.add_argument("--templates", required=True, type=Path, help="folder with base.html, style.css and chapters/")
    parser.add_argument("--out", required=True, type=Path, help="folder for the report")
    parser.add_argument(
        "--command", default="snakemake --cores 1 report", help="what makes this report, for its readers"
    )
    given = parser.parse_args()
    with or_one_line(given.out):
        try:
            write(Request(given.tables, given.figures, given.templates, given.out, given.command))
        except ReportError as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
