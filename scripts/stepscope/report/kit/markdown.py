"""The Markdown back end: pipe tables, linked images and folded parts, as GitHub shows them."""

import re
from collections.abc import Callable

from stepscope.report.kit.blocks import Box, Column, Fold, Picture, Table, TableCell, badge
from stepscope.report.kit.escaping import Prose, markdown, markdown_code, relative_link, within_html

MOST_ROWS = 40  # of a table that a shortened report keeps


class MarkdownBlocks:
    """Writes blocks as Markdown, numbering tables and figures in the order in which they come.

    shortened: 0 for all but what is for the page alone; 1 also leaves out folded and long tables, 2 what folded parts
    hold as well.
    """

    def __init__(self, shortened: int = 0) -> None:
        self.shortened = shortened
        self.tables = 0
        self.figures = 0

    def table(self, table: Table) -> Prose:
        """A pipe table with its caption above and its notes below."""
        self.tables += 1
        if self._is_left_out(table):  # counted, so that the numbers are those of the page
            return Prose("")
        head = [_heading(column) for column in table.columns]
        rule = ["---:" if column.number else ":---" for column in table.columns]
        rows = [[_cell(cell) for cell in row] for row in table.rows]
        lines = [f"| {' | '.join(line)} |" for line in [head, rule, *rows]]
        notes = [f"<sub>{markdown(note)}</sub>" for note in table.notes]
        caption = f"**Table {self.tables}.** {markdown(table.caption)}"
        below = "\n\n".join(["\n".join(lines), *notes])
        if table.folded:
            summary = f"<details><summary>{len(table.rows):,} rows</summary>"
            return Prose(f"\n{caption}\n\n{summary}\n\n{below}\n\n</details>\n")
        return Prose(f"\n{caption}\n\n{below}\n")

    def _is_left_out(self, table: Table) -> bool:
        return table.page_only or (self.shortened > 0 and (table.folded or len(table.rows) > MOST_ROWS))

    def figure(self, picture: Picture) -> Prose:
        """An image with its caption below."""
        self.figures += 1
        alternative = markdown(picture.alternative)
        image = f"![{alternative}](../figures/{picture.name}.svg)"
        return Prose(f"\n{image}\n\n**Figure {self.figures}.** {markdown(picture.caption)}\n")

    def commands(self, table: Table) -> Prose:
        """A table like any other; where it is for the page alone, a sentence on where the commands stand."""
        text = self.table(table)
        if text:
            return text
        file = f"{table.name.removeprefix('commands-')}.csv"
        where = f"[{markdown(file)}]({relative_link(f'tables/{file}')})"
        return Prose(f"\nEach cell's command stands in index.html, and in the column `command` of {where}.\n")

    def box(self, box: Box) -> Prose:
        """An alert, with the table quoted in it."""
        head = " | ".join(_heading(column) for column in box.table.columns)
        rule = " | ".join(":---" for _ in box.table.columns)
        rows = [" | ".join(_cell(cell) for cell in row) for row in box.table.rows]
        lines = ["[!WARNING]", f"**{markdown(box.title)}** {markdown(box.sentence)}", ""]
        lines += [f"| {line} |" for line in (head, rule, *rows)]
        return Prose("\n" + "\n".join(f"> {line}".rstrip() for line in lines) + "\n")

    def fold(self, fold: Fold, caller: Callable[[], str]) -> Prose:
        """A folded part; GitHub reads what is inside as Markdown, since empty lines stand around it."""
        facts = f": {within_html(fold.facts)}" if fold.facts else ""
        summary = f"<summary><b>{within_html(fold.title)}</b>{facts}</summary>"
        inside = caller().strip()
        if self.shortened > 1:
            return Prose(f"\n{markdown(fold.title)}{f': {markdown(fold.facts)}' if fold.facts else ''}\n")
        return Prose(f"\n<details>{summary}\n\n{inside}\n\n</details>\n")

    def link(self, words: str, heading: str) -> Prose:
        """A link to a heading by the name that GitHub gives it: small letters, without punctuation."""
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        return Prose(f"[{markdown(words)}](#{name})")

    def command_line(self, command: str) -> Prose:
        """A command in the text."""
        return Prose(markdown_code(command))


def _heading(column: Column) -> str:
    """`step (ms)`; the group, which has no row of its own here, stands first."""
    label = f"{column.group}: {column.label}" if column.group else column.label
    return markdown(f"{label} ({column.unit})" if column.unit else label)


def _cell(cell: TableCell) -> str:
    parts = [markdown_code(cell.text) if cell.code else markdown(cell.text)] if cell.text else []
    if cell.link and parts:
        parts = [f"[{parts[0]}]({relative_link(cell.link)})"]
    text = " ".join(parts + [f"**{markdown(badge(key)[0])}**" for key in cell.badges])
    return f"{text}<br>{markdown(cell.below)}" if cell.below else text
