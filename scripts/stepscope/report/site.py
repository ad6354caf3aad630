"""The report with what belongs to it, in a folder that is small enough for a repository or a web server."""

import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from stepscope.archive_making import make
from stepscope.report.page import Request, write

CELLS = "cells.zip"  # records, samples and analyses, as an archive of results
LARGEST_TABLE = 200_000  # bytes; the cells hold all that is in the larger ones
_PICTURE = re.compile(r"\]\(\.\./figures/([^)]+)\)")


def write_site(request: Request, site: Path) -> None:
    """Write the folder, whole or not at all: `report/` (the pages, and each of their tables as CSV), `figures/` (those
    that report.md shows, as SVG), `tables/` (but the largest) and the cells in one file.

    The pages link to nothing else. `request` is that of the report; its `results` hold the cells. Raises ArchiveError,
    in one line, where there are none.
    """
    site.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".site.", dir=site.parent) as beside:
        new = Path(beside) / site.name
        for name in ("figures", "tables"):
            (new / name).mkdir(parents=True)
        for figure in request.figures.glob("*.svg"):
            shutil.copyfile(figure, new / "figures" / figure.name)
        for table in request.tables.glob("*.csv"):
            if table.stat().st_size <= LARGEST_TABLE:
                shutil.copyfile(table, new / "tables" / table.name)
        make(new / CELLS, request.results or request.tables.parent, only_cells=True)
        write(replace(request, figures=new / "figures", out=new / "report", linked=new, kinds=("csv",)))
        shown = set(_PICTURE.findall((new / "report" / "report.md").read_text(encoding="utf-8")))
        for figure in (new / "figures").iterdir():
            if figure.name not in shown:
                figure.unlink()
        shutil.rmtree(site, ignore_errors=True)
        new.replace(site)
