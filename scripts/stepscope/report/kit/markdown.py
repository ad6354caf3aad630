"""The Markdown back end: pipe tables, linked images and folded parts, as GitHub shows them."""

import re
from collections.abc import Callable, Sequence

from stepscope.report.kit.blocks import Box, Fold, Picture, Table, TableCell, badge
from stepscope.report.kit.escaping import Prose, markdown, markdown_code, within_html
from stepscope.report.kit.exports import heading
from stepscope.report.kit.files import Files


class MarkdownBlocks:
    """Writes blocks as Markdown, numbering tables and figures in the order in which they come."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.tables = 0
        self.figures: dict[str, int] = {}

    def table(self, table: Table) -> Prose:
        """A pipe table with its caption above and its notes below."""
        self.tables += 1
        head = [markdown(heading(column)) for column in table.columns]
        rule = ["---:" if column.number else ":---" for column in table.columns]
        rows = [[self._cell(cell) for cell in row] for row in table.rows]
        lines = [f"| {' | '.join(line)} |" for line in [head, rule, *rows]]
        notes = [f"<sub>{markdown(note)}</sub>" for note in table.notes]
        caption = f"**Table {self.tables}.** {markdown(table.caption)}"
        below = "\n\n".join(["\n".join(lines), *notes])
        if table.folded:
            summary = f"<details><summary>{len(table.rows):,} rows</summary>"
            return Prose(f"\n{caption}\n\n{summary}\n\n{below}\n\n</details>\n")
        return Prose(f"\n{caption}\n\n{below}\n")

    def figure(self, picture: Picture) -> Prose:
        """An image with its caption below, once."""
        if picture.name in self.figures:
            return Prose(f"Figure {self.figures[picture.name]} shows this.")
        number = self.figures[picture.name] = len(self.figures) + 1
        alternative = markdown(picture.alternative)
        image = f"![{alternative}]({self.files.figure(picture.name)})"
        return Prose(f"\n{image}\n\n**Figure {number}.** {markdown(picture.caption)}\n")

    def box(self, box: Box) -> Prose:
        """An alert, with the table quoted in it."""
        head = " | ".join(markdown(heading(column)) for column in box.table.columns)
        rule = " | ".join(":---" for _ in box.table.columns)
        rows = [" | ".join(self._cell(cell) for cell in row) for row in box.table.rows]
        lines = ["[!WARNING]", f"**{markdown(box.title)}** {markdown(box.sentence)}", ""]
        lines += [f"| {line} |" for line in (head, rule, *rows)]
        return Prose("\n" + "\n".join(f"> {line}".rstrip() for line in lines) + "\n")

    def fold(self, fold: Fold, caller: Callable[[], str]) -> Prose:
        """A folded part; GitHub reads what is inside as Markdown, since empty lines stand around it."""
        facts = f": {within_html(fold.facts)}" if fold.facts else ""
        summary = f"<summary><b>{within_html(fold.title)}</b>{facts}</summary>"
        inside = caller().strip()
        return Prose(f"\n<details>{summary}\n\n{inside}\n\n</details>\n")

    def takeaway(self, sentences: Sequence[str]) -> Prose:
        """What a chapter says in short, quoted."""
        return Prose(f"\n> **In short.** {markdown(' '.join(sentences))}\n")

    def heading(self, level: int, words: str, name: str) -> Prose:
        """A heading; GitHub names it by its words."""
        return Prose(f"{'#' * level} {markdown(words)}")

    def anchor(self, words: str, name: str) -> str:
        """A link's target: the heading with these words, by the name that GitHub gives it, small and unpunctuated."""
        return "#" + re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")

    def command_line(self, command: str) -> Prose:
        """A command in the text."""
        return Prose(markdown_code(command))

    def _cell(self, cell: TableCell) -> str:
        parts = [markdown_code(cell.text) if cell.code else markdown(cell.text)] if cell.text else []
        target = self.files.of_cell(cell.link) if cell.link and parts else ""
        text = " ".join([*(f"[{part}]({target})" if target else part for part in parts), *map(_badge, cell.badges)])
        return f"{text}<br>{markdown(cell.below)}" if cell.below else text


def _badge(key: str) -> str:
    return f"**{markdown(badge(key)[0])}**"
