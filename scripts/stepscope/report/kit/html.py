"""A page's Markdown as one HTML file: figures within it, anchors, a table of contents, themes by
its style alone."""

import html
import itertools
import os
import re
from pathlib import Path

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup
from mdit_py_plugins.anchors import anchors_plugin

from stepscope.figures import colours, svg

_FIGURE = re.compile(r'<p><img src="([^"]+)" alt="[^"]*"[^>]*>\s*<em>(.*?)</em></p>', re.DOTALL)
_TABLE = re.compile(r"<table>(.*?)</table>(?:\s*<p><em>(.*?)</em></p>)?", re.DOTALL)
_CELL = re.compile(r"<td.*?</td>", re.DOTALL)
_MARK = re.compile(r"\((?:c|r|tm)\)", re.IGNORECASE)  # the typographer makes one letter of it


def slug(title: str) -> str:
    """The anchor of a heading, as GitHub makes it; the same of its Markdown and of its text."""
    plain = _MARK.sub("", re.sub(r"\\(.)", r"\1", title)).lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")


def body(markdown: str, figures: Path | dict[str, str]) -> str:
    """The page's HTML without its frame. Raw HTML is shown, not obeyed, except for line breaks in
    tables.

    figures: the folder that figures' paths start from, or SVG by these paths.
    """
    reader = MarkdownIt("commonmark", {"typographer": True, "html": False})
    reader.enable(["table", "smartquotes", "replacements"])
    reader.use(anchors_plugin, max_level=3, slug_func=slug)
    text = reader.render(markdown)
    text = _CELL.sub(lambda cell: cell[0].replace("&lt;br&gt;", "<br>"), text)
    tables, drawn = itertools.count(1), itertools.count(1)
    text = _TABLE.sub(lambda found: _table(found[1], found[2], next(tables)), text)
    return _FIGURE.sub(lambda found: _figure(found[1], found[2], figures, next(drawn)), text)


def _table(rows: str, caption: str | None, number: int) -> str:
    """In a part of the page that scrolls by itself, by keyboard too, and is named."""
    heads = re.sub(r"<th\b", '<th scope="col"', rows)
    named = f'aria-labelledby="table-{number}"' if caption else f'aria-label="Table {number}"'
    table = f'<div class="table" role="region" tabindex="0" {named}><table>{heads}</table></div>'
    if not caption:
        return table
    return f'{table}\n<p class="caption" id="table-{number}">{caption}</p>'


def _figure(path: str, caption: str, figures: Path | dict[str, str], number: int) -> str:
    """The same of a figure: the picture is told by its caption, which is read once."""
    if isinstance(figures, dict):
        source = figures[path]
    else:
        source = Path(os.path.normpath(figures / path)).read_text()
    drawn = svg.inline(source, number)
    label = f'aria-label="Figure {number}, to scroll"'
    scrolls = f'<div class="figure" role="region" tabindex="0" {label}>{drawn}</div>'
    return f"<figure>{scrolls}<figcaption>{caption}</figcaption></figure>"


def document(
    base: Path,
    markdown: str,
    figures: Path | dict[str, str],
    title: str,
    contents: list[tuple[str, str]],
    **more: object,
) -> str:
    """The whole file. base: a folder with base.html and style.css; contents: (anchor, title) of
    each chapter."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    frame = environment.from_string((base / "base.html").read_text())
    chapters = [anchor for anchor, _ in contents[1:]]
    return frame.render(
        title=html.unescape(re.sub(r"\\(.)", r"\1", title)),
        style=Markup(colours.css() + (base / "style.css").read_text()),
        body=Markup(_chapters(body(markdown, figures), chapters)),
        contents=contents,
        **more,
    )


def _chapters(text: str, anchors: list[str]) -> str:
    """The headings of chapters are told from those of page one's parts."""
    for anchor in anchors:
        text = text.replace(f'<h2 id="{anchor}"', f'<h2 class="chapter" id="{anchor}"', 1)
    return text
