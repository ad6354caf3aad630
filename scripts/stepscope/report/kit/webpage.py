"""The HTML back end: rich tables, figures as inline SVG, and one file that needs nothing else."""

import json
import re
from collections.abc import Callable, Sequence

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from stepscope import colours
from stepscope.report.kit.blocks import Box, Fold, Picture, Table
from stepscope.report.kit.escaping import Prose, markdown, one_line
from stepscope.report.kit.exports import Exports
from stepscope.report.kit.files import Files
from stepscope.report.kit.web_table import files_line, table_html

# Pixels on the page for a point of the figure: the most, and the least at which its text can be read.
_LARGEST, _SMALLEST = 1.43, 0.95
_MARK = "\ue000{}\ue001"


class WebBlocks:
    """Keeps the blocks' HTML aside and leaves a mark in the prose, which goes through Markdown first."""

    def __init__(self, files: Files, style: str = "", exports: Exports | None = None) -> None:
        self.files = files
        self.exports = exports
        # A colour that the page's style does not know stays as it is in the figure.
        self.variables = {colour: name for colour, name in colours.VARIABLES.items() if f"--{name}:" in style}
        self.tables = 0
        self.figures: dict[str, int] = {}
        self.kept: list[str] = []

    def _keep(self, html: str) -> Prose:
        self.kept.append(html)
        return Prose(f"\n\n{_MARK.format(len(self.kept) - 1)}\n\n")

    def table(self, table: Table) -> Prose:
        """A table in a box that scrolls sideways by itself."""
        self.tables += 1
        number = f"Table {self.tables}."
        html = table_html(table, number, self.files)
        html += "".join(f"<p class=note>{escape(note)}</p>" for note in table.notes)
        stem, kinds = (self.exports.add(table), self.exports.kinds) if self.exports else ("", ())
        html += files_line(stem, kinds, len(table.rows), number)
        if table.folded:
            summary = f"<summary>{escape(f'{number} {table.caption}')} ({len(table.rows):,} rows)</summary>"
            html = f"<details class=folded>{summary}{html}</details>"
        return self._keep(f'<div class=table-block id="table-{self.tables}"{_about(table)}>{html}</div>')

    def figure(self, picture: Picture) -> Prose:
        """Inline SVG, its text recoloured by the page's theme. A figure stands on a page once."""
        if picture.name in self.figures:
            return Prose(f"[Figure {self.figures[picture.name]}](#figure-{self.figures[picture.name]}) shows this.")
        number = self.figures[picture.name] = len(self.figures) + 1
        path = self.files.figures / f"{picture.name}.svg"
        svg = inline_svg(path.read_text(encoding="utf-8"), number, picture.alternative, self.variables)
        pdf = self.files.figure(picture.name, "pdf")
        link = f' <a href="{escape(pdf)}" aria-label="Figure {number} as PDF">PDF</a>' if pdf else ""
        caption = f"<figcaption><b>Figure {number}.</b> {escape(picture.caption)}{link}</figcaption>"
        image = f'<div class=scroll tabindex=0 role=group aria-label="Figure {number}">{svg}</div>'
        return self._keep(f'<figure id="figure-{number}">{image}{caption}</figure>')

    def box(self, box: Box) -> Prose:
        """A warning."""
        head = f"<p><strong>{escape(box.title)}</strong> {escape(box.sentence)}</p>"
        return self._keep(f"<aside class=box role=note>{head}{table_html(box.table, '', self.files)}</aside>")

    def fold(self, fold: Fold, caller: Callable[[], str]) -> Prose:
        """A part that opens by a click."""
        facts = f" <span>{escape(fold.facts)}</span>" if fold.facts else ""
        summary = f"<summary><b>{escape(fold.title)}</b>{facts}</summary>"
        opening = self._keep(f"<details{_about(fold)} class=part>{summary}<div class=inside>")
        return Prose(opening + caller() + self._keep("</div></details>"))

    def command_line(self, command: str) -> Prose:
        """A command in the text; a mark of its own, since it stands within a paragraph."""
        self.kept.append(f"<code class=command>{escape(one_line(command))}</code>")
        return Prose(_MARK.format(len(self.kept) - 1))

    def takeaway(self, sentences: Sequence[str]) -> Prose:
        """What a chapter says in short, in a box."""
        told = escape(one_line(" ".join(sentences)))
        return self._keep(f"<div class=takeaway><p><b>In short.</b> {told}</p></div>")

    def heading(self, level: int, words: str, name: str) -> Prose:
        """A heading whose id stays the same when its words change."""
        return Prose(f"{'#' * level} {markdown(words)}{_MARK.format('#' + name)}")

    def anchor(self, words: str, name: str) -> str:
        """A link's target on this page: the heading of that name."""
        return f"#{name}"

    def page(self, text: str) -> tuple[Markup, list[tuple[int, str, str]]]:
        """Markdown with marks -> (HTML, headings as (level, id, text)). HTML in the Markdown is not passed through."""
        reader = MarkdownIt("commonmark", {"html": False})
        tokens = reader.parse(text)
        headings: list[tuple[int, str, str]] = []
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                words = "".join(child.content for child in tokens[at + 1].children or [])
                words, _, own = words.removesuffix("\ue001").partition("\ue000#")
                name = own or _identifier(words, [known for _, known, _ in headings])
                token.attrSet("id", name)
                headings.append((int(token.tag[1]), name, words))
        html = reader.renderer.render(tokens, reader.options, {})
        html = re.sub(r"\ue000#[^\ue001]*\ue001", "", html)
        html = re.sub(r"(?<=[×±]) (?=\d)|(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", html)  # a number keeps its sign
        html = re.sub(r"<p>\ue000(\d+)\ue001</p>", lambda found: self.kept[int(found[1])], html)
        return Markup(re.sub(r"\ue000(\d+)\ue001", lambda found: self.kept[int(found[1])], html)), headings


def _about(block: Table | Fold) -> str:
    """What the data page's filter asks of a whole table or part."""
    return f' data-about="{escape(json.dumps(dict(block.about)))}"' if block.about else ""


def _identifier(words: str, taken: list[str]) -> str:
    """A heading's id, distinct from those before it."""
    base = "section-" + (re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "part")
    name, count = base, 2
    while name in taken:
        name, count = f"{base}-{count}", count + 1
    return name


def inline_svg(svg: str, number: int, alternative: str, variables: dict[str, str]) -> str:
    """An SVG file as part of a page: short ids of its own, colours as variables of the page, no style that reaches
    outside; its classes say the same in every figure.

    number: that of the figure. variables: colour → the variable that takes its place.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style>[*].*?</style>", "", svg)
    found = dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg))
    names = {name: f"f{number}-{at}" for at, name in enumerate(found)}
    svg = svg.replace("xlink:href=", "href=")
    svg = re.sub(r'(\bid="|url\(#|\bhref="#)([^")]+)', lambda each: each[1] + names.get(each[2], each[2]), svg)
    for colour, variable in variables.items():
        svg = svg.replace(colour, f"var(--{variable})")
    left, top, width, height = re.search(r'viewBox="([^"]+)"', svg)[1].split()
    size = f"max-width: {float(width) * _LARGEST:.0f}px; min-width: {float(width) * _SMALLEST:.0f}px"
    label = escape(one_line(alternative))
    opening = f'<svg viewBox="{left} {top} {width} {height}" style="{size}" role="img" aria-label="{label}">'
    return re.sub(r"^<svg[^>]*>", lambda _: opening, svg, count=1).strip()
