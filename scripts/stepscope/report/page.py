"""Puts the report together: page one and the chapters, as Markdown and as a page, and the page with all data."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from stepscope.report.content import Content
from stepscope.report.frame import Frame
from stepscope.report.kit.document import document, style_of
from stepscope.report.kit.exports import FOLDER, KINDS, Exports
from stepscope.report.kit.files import Files
from stepscope.report.kit.markdown import MarkdownBlocks
from stepscope.report.kit.webpage import WebBlocks
from stepscope.tables.reader import Tables

REPORT, DATA = "index.html", "data.html"


@dataclass(frozen=True)
class Request:
    """What to write: the studies in their order, the folders, and what a person typed to get it.

    comparisons: sections that belong to no study, since they compare several; `page_one` among them opens the report.
    results: the folder with the cells' folders; that above the tables unless it is given. out: that of the pages.
    linked: the folder with whose files the pages are to be read, cells in it and tables and figures in folders of their
    own; they link to no others. Without it, to those that they are made of. kinds: of the tables' files.
    """

    studies: list[str]
    tables: Path
    figures: Path
    templates: Path
    out: Path
    title: str
    command: str
    partial: bool = False
    comparisons: tuple[str, ...] = ()
    results: Path | None = None
    linked: Path | None = None
    kinds: tuple[str, ...] = tuple(KINDS)


def content_of(request: Request) -> Content:
    """What the report says."""
    tables = Tables(request.tables, request.studies)
    return Content(tables, request.comparisons, request.title, request.command, request.partial)


def files_of(request: Request) -> Files:
    """What the report links to."""
    if request.linked:
        return Files(request.linked, request.linked / "tables", request.linked / "figures", request.out)
    return Files(request.results or request.tables.parent, request.tables, request.figures, request.out)


def report(request: Request) -> dict[str, str]:
    """The report's files: name → content."""
    content, files, exports = content_of(request), files_of(request), Exports(request.kinds)
    pages = {
        DATA: web_page(request, content, files, Frame.data, exports),  # first: its tables keep their names
        REPORT: web_page(request, content, files, Frame.report, exports),
        "report.md": Frame(request.templates, MarkdownBlocks(files), content, files).report(),
    }
    return pages | dict(exports.files())


def web_page(request: Request, content: Content, files: Files, render, exports: Exports | None = None) -> str:
    """One HTML file that needs nothing else; `render` gives its prose, `exports` collects its tables."""
    web = WebBlocks(files, style_of(request.templates), exports)
    is_report = render is Frame.report
    body, headings = web.page(render(Frame(request.templates, web, content, files)))
    return document(
        request.templates,
        request.title,
        body,
        [heading for heading in headings if heading[0] in (2, 3)],
        (DATA, "All data") if is_report else (REPORT, "Report"),
        {} if is_report else content.axes,
    )


def write(request: Request) -> None:
    """Writes the report's files into their folder, the folder of tables and each page whole or not at all."""
    request.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".report.", dir=request.out) as beside:
        new = Path(beside)
        if request.kinds:
            (new / FOLDER).mkdir()
        for name, content in report(request).items():
            (new / name).write_text(content, encoding="utf-8")
        shutil.rmtree(request.out / FOLDER, ignore_errors=True)
        for path in sorted(new.iterdir()):
            path.replace(request.out / path.name)
