"""The report with what belongs to it, in a folder that is small enough for a repository or a web server."""

import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from stepscope.archive import ArchiveError
from stepscope.archive_making import make
from stepscope.report.kit.files import CELLS
from stepscope.report.page import Request, write

_PAGE = "report/index.html"
_PICTURE = re.compile(r"\]\(\.\./figures/([^)]+)\)")


def write_site(request: Request, site: Path) -> None:
    """Write the folder, whole or not at all: `report/` (the pages), `figures/` (those that report.md shows, as SVG) and
    the cells in one file, with all tables but those of samples and events.

    The pages link to nothing else. `request` is that of the report; its `results` hold the cells. Raises ArchiveError,
    in one line, where there are none, and for a folder that is there and no site: nothing else is ever replaced.
    """
    results = request.results or request.tables.parent
    _check_replaceable(site, (results, request.tables, request.figures))
    site.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".site.", dir=site.parent) as beside:
        new = Path(beside) / site.name
        (new / "figures").mkdir(parents=True)
        for figure in request.figures.glob("*.svg"):
            shutil.copyfile(figure, new / "figures" / figure.name)
        make(new / CELLS, results, is_small=True)
        write(replace(request, figures=new / "figures", out=new / "report", linked=new, kinds=()))
        shown = set(_PICTURE.findall((new / "report" / "report.md").read_text(encoding="utf-8")))
        for figure in (new / "figures").iterdir():
            if figure.name not in shown:
                figure.unlink()
        if site.exists():
            site.replace(Path(beside) / "before")
        new.replace(site)


def _check_replaceable(site: Path, read: Iterable[Path]) -> None:
    """Raise ArchiveError unless the folder is not there, empty or an earlier site, and holds nothing that is read."""
    if any(folder.resolve().is_relative_to(site.resolve()) for folder in read):
        raise ArchiveError(f"{site} holds results, and a site would replace them; name another folder")
    if site.is_symlink() or (site.exists() and not site.is_dir()):
        raise ArchiveError(f"{site} is no folder; name another one for the site")
    if site.is_dir() and any(site.iterdir()) and not all((site / name).is_file() for name in (CELLS, _PAGE)):
        raise ArchiveError(
            f"{site} is there and no site, and a site would replace it; name another folder, or delete it"
        )
