"""Writes the report, index.html, report.md and facts.json, from tables and figures."""

from stepscope.machine.process import die_with_starter

die_with_starter()

import argparse
import sys
from pathlib import Path

from stepscope.files import or_one_line
from stepscope.report.book import ReportError, Request, write, write_site


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tables", required=True, type=Path, help="folder with series.csv and the other tables"
    )
    parser.add_argument("--figures", required=True, type=Path, help="folder with the drawn figures")
    parser.add_argument(
        "--templates",
        required=True,
        type=Path,
        help="folder with base.html, style.css and chapters/",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, help="folder for the report")
    where.add_argument(
        "--site", type=Path, help="the same with its figures and tables, for a web server"
    )
    parser.add_argument(
        "--command",
        default="snakemake --cores 1 report",
        help="what makes this report, for its readers",
    )
    given = parser.parse_args()
    out = given.site or given.out
    with or_one_line(out):
        try:
            (write_site if given.site else write)(
                Request(given.tables, given.figures, given.templates, out, given.command)
            )
        except ReportError as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
