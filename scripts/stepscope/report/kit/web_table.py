"""Tables as HTML. One of many rows has them as JSON, which report/tables.js draws when the table comes into view."""

import json
import re
from collections.abc import Sequence

from markupsafe import escape

from stepscope.report.kit.blocks import BADGES, Column, Table, TableCell, badge
from stepscope.report.kit.escaping import one_line
from stepscope.report.kit.exports import FOLDER, KINDS, heading, spans
from stepscope.report.kit.files import Files

MOST_PLAIN = 100  # rows of a table whose HTML stands in the file, and so is there without the page's script
# Where a name or a path that is longer than a line may go on in the next; BREAKS in report/tables.js is the same.
BREAKS = re.compile(r"(?<=[_/:=])(?=\w)|(?<=\.)(?=[A-Za-z_])")
AXES = ("size", "context", "precision", "hardware")  # what the data page filters by: a column's label, or Table.about


def table_html(table: Table, number: str, files: Files) -> str:
    """A table in a box that scrolls sideways by itself."""
    caption = f"<b>{number}</b> {escape(table.caption)}" if number else escape(table.caption)
    label = escape(one_line(f"{number} {table.caption}")[:120])
    is_plain = len(table.rows) <= MOST_PLAIN
    rows = "".join(_rows(table, files)) if is_plain else ""
    html = (
        f'<div class=scroll tabindex=0 role=region aria-label="{label}"><table{_facts(table)}>'
        f"<caption><span>{caption}</span></caption><thead>{_head(table)}</thead><tbody>{rows}</tbody></table></div>"
    )
    if is_plain:
        return html
    packed = embedded([[pack(cell, files) for cell in row] for row in table.rows])
    return f"{html}<script type=application/json class=rows>{packed}</script>"


def _facts(table: Table) -> str:
    """What the page's script has to know of the columns: their names, how they are aligned, which of AXES they are."""
    axes = {column.label: at for at, column in enumerate(table.columns) if column.label in AXES and not column.group}
    names = json.dumps([heading(column) for column in table.columns], ensure_ascii=False)
    kinds = "".join(_kind(column) for column in table.columns)
    return f' data-names="{escape(names)}" data-kinds={kinds} data-axes="{escape(json.dumps(axes))}"'


def files_line(stem: str, kinds: Sequence[str], rows: int, number: str) -> str:
    """The line below a table for the tools of the page's script, with links to the table as files of these kinds and
    a word on rows that only the script draws. A short table without a stem has none."""
    if not stem and rows <= MOST_PLAIN:
        return ""
    kinds = kinds if stem else ()
    links = " ".join(
        f'<a href="{FOLDER}/{stem}.{kind}" aria-label="{KINDS[kind]} of {escape(number.rstrip("."))}">{KINDS[kind]}</a>'
        for kind in kinds
    )
    alone = f"Its {rows:,} rows are in the CSV. " if kinds else f"A script draws its {rows:,} rows."
    alone = f"<noscript>{alone}</noscript>" if rows > MOST_PLAIN else ""
    return f"<p class=files>{alone}{links}</p>"


def embedded(value: object) -> str:
    """JSON that may stand in a <script> element: nothing in it ends one."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def pack(cell: TableCell, files: Files) -> str | list:
    """A cell for the page's script: its text, or [text, sort, below, badges, link, code, title] as far as it goes."""
    sort = None if cell.sort is None else float(f"{cell.sort:.9g}")
    link = files.of_cell(cell.link) if cell.link else ""
    parts = [
        one_line(cell.text),
        sort,
        one_line(cell.below),
        list(cell.badges),
        link,
        cell.code or None,
        one_line(cell.title),
    ]
    while len(parts) > 1 and parts[-1] in (None, "", []):
        parts.pop()
    return parts[0] if len(parts) == 1 else parts


def _rows(table: Table, files: Files) -> list[str]:
    parts = []  # no end tags, which HTML does not need, and no class of numbers: a seventh of the file
    for at, row in enumerate(table.rows):
        begins = table.grouped and at and row[0].text != table.rows[at - 1][0].text
        parts.append("<tr class=begins>" if begins else "<tr>")
        pairs = zip(row, table.columns, strict=True)
        parts += [_cell(cell, column, place == 0, files) for place, (cell, column) in enumerate(pairs)]
    return parts


def _head(table: Table) -> str:
    """One row of headings, or two where columns are grouped."""
    grouped = any(column.group for column in table.columns)
    first, second = [], []
    at = 0
    for group, span in spans(table.columns):
        own = table.columns[at : at + span]
        if group:
            first.append(f"<th scope=colgroup colspan={span}>{escape(group)}</th>")
            second += [_heading(column, "") for column in own]
        else:
            (first if grouped else second).append(_heading(own[0], " rowspan=2" if grouped else ""))
        at += span
    rows = [first, second] if grouped else [second]
    return "".join(f"<tr>{''.join(row)}</tr>" for row in rows)


def _heading(column: Column, more: str) -> str:
    kind = "n" if column.number else "t"
    unit = f"<small>{escape(column.unit)}</small>" if column.unit else ""
    label = str(escape(column.label)).replace("+", "+<wbr>")
    return f"<th scope=col class={kind}{more}>{label}{unit}</th>"


def _kind(column: Column) -> str:
    """The class of a column's cells: a number, wrapped text, text."""
    return "n" if column.number else "w" if column.wrap else "t"


def _cell(cell: TableCell, column: Column, first: bool, files: Files) -> str:
    tag = "th scope=row" if first else "td"
    words = _breakable if column.wrap else escape
    text = str(words(cell.text)) if cell.text else ""
    if cell.code:
        text = f"<code>{text}</code>"
    target = files.of_cell(cell.link) if cell.link else ""
    if target:
        text = f'<a href="{escape(target)}">{text}</a>'
    badges = "".join(_badge(key) for key in cell.badges)
    text = badges + text if column.number else text + badges
    if cell.below:
        text += f"<small>{words(cell.below)}</small>"
    sort = f" data-sort={cell.sort:.9g}" if cell.sort is not None else ""
    title = f' title="{escape(one_line(cell.title))}"' if cell.title else ""
    kind = "" if column.number and not first else f" class={_kind(column)}"
    return f"<{tag}{kind}{sort}{title}>{text}"


def _breakable(text: str) -> str:
    """HTML of a text that wraps. A word of several parts stands in one line where it fits into one, else it breaks
    between these before it does so anywhere."""
    return " ".join(_word([str(escape(part)) for part in BREAKS.split(word)]) for word in text.split(" "))


def _word(parts: list[str]) -> str:
    return f"<span class=word>{'<wbr>'.join(parts)}</span>" if len(parts) > 1 else parts[0]


def badge_facts() -> dict[str, list[str]]:
    """Each badge's word and meaning, for the page's script."""
    return {key: list(badge(key)) for key in BADGES}


def _badge(key: str) -> str:
    """A mark; what those of BADGES mean is added by the page's script, which has it once."""
    word, meaning = badge(key)
    kind, title = (key, "") if key in BADGES else ("other", f' title="{escape(meaning)}"')
    return f'<span class="badge {kind}"{title}>{escape(word)}</span>'
