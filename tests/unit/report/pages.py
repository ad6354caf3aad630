"""Reading a report in tests: what HTML and Markdown parsers make of it."""

import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt


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
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self._cell = []
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        self._silent -= tag in ("script", "style")
        if tag in ("td", "th"):
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
