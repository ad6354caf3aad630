"""Writes the report, index.html, data.html and report.md, from the tables and figures of one or several studies."""

import argparse
from pathlib import Path

from stepscope.config.studies import COMPARISONS, STUDIES
from stepscope.files import or_one_line
from stepscope.report.page import Request, write
from stepscope.report.site import write_site


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", required=True, type=Path, help="folder with <study>.csv")
    parser.add_argument("--figures", required=True, type=Path, help="folder with the drawn figures")
    parser.add_argument("--templates", required=True, type=Path, help="folder with the report's templates")
    parser.add_argument("--out", type=Path, help="folder for the report")
    parser.add_argument(
        "--results", type=Path, help="folder with the cells' folders (default: the one above the tables)"
    )
    parser.add_argument(
        "--title", default="Where a Transformer's training step spends its time", help="the report's title"
    )
    parser.add_argument(
        "--command", default="snakemake --cores 1 report", help="what makes this report, for its readers"
    )
    parser.add_argument(
        "--site", type=Path, help="write a folder for a repository or a web server instead: the report, and the cells"
    )
    parser.add_argument("--partial", action="store_true", help="name the missing and failed cells in a box at the top")
    arguments = parser.parse_args()
    if bool(arguments.out) == bool(arguments.site):
        parser.error("give either --out, a folder for the report, or --site")
    request = Request(
        studies=[study.name for study in STUDIES],
        tables=arguments.tables,
        figures=arguments.figures,
        templates=arguments.templates,
        out=arguments.out or arguments.site / "report",
        title=arguments.title,
        command=arguments.command,
        partial=arguments.partial,
        comparisons=tuple(section.name for section in COMPARISONS),
        results=arguments.results,
    )
    with or_one_line(arguments.site or arguments.out):
        if arguments.site:
            write_site(request, arguments.site)
        else:
            write(request)


if __name__ == "__main__":
    main()
