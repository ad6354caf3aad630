"""The report with what belongs to it, in a folder that is small enough for a repository or a web server."""

import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from stepscope.archive import pack
from stepscope.report.kit.files import CELLS
from stepscope.report.page import Request, write

_PAGE = "report/index.html"
_PICTURE = re.compile(r"\]\(\.\./figures/([^)]+)\)")


def write_site(request: Request, site: Path) -> None:
    """Write the folder, whole or not at all: `report/` (the pages), `figures/` (those that report.md shows, as SVG) and
    the cells in one file, with all tables but those of samples and events.

    The pages link to nothing else. `request` is that of the report; its `results` hold the cells.
    """
    results = request.results or request.tables.parent
    site.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".site.", dir=site.parent) as beside:
        new = Path(beside) / site.name
        (new / "figures").mkdir(parents=True)
        for figure in request.figures.glob("*.svg"):
            shutil.copyfile(figure, new / "figures" / figure.name)
        pack(results, new / CELLS)
        write(replace(request, figures=new / "figures", out=new / "report", linked=new, kinds=()))
        shown = set(_PICTURE.findall((new / "report" / "report.md").read_text(encoding="utf-8")))
        for figure in (new / "figures").iterdir():
            if figure.name not in shown:
                figure.unlink()
        if site.exists():
            site.replace(Path(beside) / "before")
        new.replace(site)
