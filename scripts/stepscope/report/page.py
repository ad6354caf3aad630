"""Puts the report together: page one and the chapters, as Markdown and as a page, and the page with all data."""

import os
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from stepscope.report.content import Content
from stepscope.report.frame import Frame
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


def content_of(request: Request) -> Content:
    """What the report says."""
    tables = Tables(request.tables, request.studies)
    return Content(tables, request.comparisons, request.title, request.command, request.partial)


def files_of(request: Request) -> Files:
    """What the report links to."""
    return Files(request.results or request.tables.parent, request.tables, request.figures, request.out)


def report(request: Request) -> dict[str, str]:
    """The report's files: name → content."""
    content, files = content_of(request), files_of(request)
    return {
        "report.md": Frame(request.templates, MarkdownBlocks(files), content, files).report(),
        REPORT: web_page(request, content, files, Frame.report),
        DATA: web_page(request, content, files, Frame.data),
    }


def web_page(request: Request, content: Content, files: Files, render) -> str:
    """One HTML file that needs nothing else; `render` gives its prose."""
    style = (request.templates / "style.css").read_text(encoding="utf-8")
    web = WebBlocks(files, style)
    body, headings = web.page(render(Frame(request.templates, web, content, files)))
    page = Environment(loader=FileSystemLoader(request.templates), autoescape=True, undefined=StrictUndefined)
    return page.get_template("page.html.j2").render(
        title=request.title,
        body=body,
        headings=[heading for heading in headings if heading[0] in (2, 3)],
        other=(DATA, "All data") if render is Frame.report else (REPORT, "Report"),
        style=style,
        script=(request.templates / "script.js").read_text(encoding="utf-8"),
    )


def write(request: Request) -> None:
    """Writes the report's files into their folder, each whole or not at all."""
    request.out.mkdir(parents=True, exist_ok=True)
    for name, content in report(request).items():
        beside = request.out / f".{name}.{os.getpid()}"
        beside.write_text(content, encoding="utf-8")
        beside.replace(request.out / name)
