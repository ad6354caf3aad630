"""Writes the report, index.html, data.html and report.md, from the tables and figures of one or several studies."""

import argparse
from pathlib import Path

from stepscope.files import or_one_line
from stepscope.report.page import Request, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--study", required=True, action="append", dest="studies", help="a study to show; repeat in order"
    )
    parser.add_argument(
        "--comparison",
        action="append",
        default=[],
        dest="comparisons",
        help="a section that compares studies, after theirs; repeat in order",
    )
    parser.add_argument("--tables", required=True, type=Path, help="folder with <study>.csv")
    parser.add_argument("--figures", required=True, type=Path, help="folder with the drawn figures")
    parser.add_argument("--templates", required=True, type=Path, help="folder with the report's templates")
    parser.add_argument("--out", required=True, type=Path, help="folder for the report")
    parser.add_argument(
        "--results", type=Path, help="folder with the cells' folders (default: the one above the tables)"
    )
    parser.add_argument(
        "--title", default="Where a Transformer's training step spends its time", help="the report's title"
    )
    parser.add_argument(
        "--command", default="snakemake --cores 1 report", help="what makes this report, for its readers"
    )
    parser.add_argument("--partial", action="store_true", help="name the missing and failed cells in a box at the top")
    arguments = parser.parse_args()
    request = Request(
        studies=arguments.studies,
        tables=arguments.tables,
        figures=arguments.figures,
        templates=arguments.templates,
        out=arguments.out,
        title=arguments.title,
        command=arguments.command,
        partial=arguments.partial,
        comparisons=tuple(arguments.comparisons),
        results=arguments.results,
    )
    with or_one_line(arguments.out):
        write(request)


if __name__ == "__main__":
    main()
