"""Reading a report in tests: what HTML and Markdown parsers make of it."""

import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

from markdown_it import MarkdownIt
from stepscope.figures import theme
from stepscope.report.frame import Frame
from stepscope.report.kit.files import Files
from stepscope.report.kit.markdown import MarkdownBlocks
from stepscope.report.page import Request, content_of, files_of, web_page

TEMPLATES = Path(__file__).resolve().parents[3] / "report"


class Page(HTMLParser):
    """Elements with their attributes, text, and tables as rows of cells' texts."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict]] = []
        self.text: list[str] = []
        self.tables: list[list[list[str]]] = []
        self._cell: list[str] | None = None
        self._silent = 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._silent += tag in ("script", "style")
        if tag == "table":
            self.tables.append([])
        if tag in ("tr", "td", "th"):
            self._end_cell()
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self._cell = []
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        self._silent -= tag in ("script", "style")
        if tag in ("td", "th", "tr", "thead", "tbody", "table"):
            self._end_cell()

    def _end_cell(self):
        """HTML needs no end tag of a cell."""
        if self._cell is not None:
            self.tables[-1][-1][-1] = re.sub(r"\s+", " ", "".join(self._cell)).strip()
            self._cell = None

    def handle_data(self, data):
        if not self._silent:
            self.text.append(data)
        if self._cell is not None:
            self._cell.append(data)


def markdown_page(text: str) -> Page:
    """Markdown as GitHub would show it: pipe tables, and HTML passed through."""
    return Page(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


PLACES = "results", "results/tables", "results/figures", "results/report"


class AllThere(Files):
    """Links to files that no test has to make."""

    def exists(self, path):
        return True


def frame_of(request: Request, is_all_there: bool = False) -> Frame:
    """The frame that writes Markdown; is_all_there: links to files of which only the names are known."""
    files = AllThere(*map(Path, PLACES)) if is_all_there else files_of(request)
    return Frame(request.templates, MarkdownBlocks(files), content_of(request), files)


def data_pages(request: Request) -> tuple[str, str]:
    """All data as (Markdown, which tests read more easily, the page), with links to files of which names are known."""
    frame, files = frame_of(request, is_all_there=True), files_of(request)
    there = AllThere(files.results, files.tables, files.figures, files.page)
    return frame.data(), web_page(request, frame.content, there, Frame.data)


def undrawn_pages(folder: Path, tables: Path, studies: Iterable[str], figures: Iterable[str]) -> tuple[str, str]:
    """data_pages() of some studies in a folder, with empty figures of these names."""
    for name in figures:
        theme.write(lambda _tables: theme.empty("not drawn in this test"), None, folder / "figures", name)
    places = tables, folder / "figures", TEMPLATES, folder / "report"
    return data_pages(Request(list(studies), *places, "Title", "snakemake report"))
