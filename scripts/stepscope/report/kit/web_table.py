"""Tables as HTML."""

from markupsafe import escape

from stepscope.report.kit.blocks import BADGES, Column, Table, TableCell, badge
from stepscope.report.kit.escaping import one_line
from stepscope.report.kit.files import Files


def table_html(table: Table, number: str, files: Files) -> str:
    """A table in a box that scrolls sideways by itself."""
    caption = f"<b>{number}</b> {escape(table.caption)}" if number else escape(table.caption)
    label = escape(one_line(f"{number} {table.caption}")[:120])
    parts = [f'<div class=scroll tabindex=0 role=region aria-label="{label}"><table>']
    parts.append(f"<caption><span>{caption}</span></caption><thead>{_head(table)}</thead><tbody>")
    for at, row in enumerate(table.rows):
        begins = table.grouped and at and row[0].text != table.rows[at - 1][0].text
        parts.append("<tr class=begins>" if begins else "<tr>")
        pairs = zip(row, table.columns, strict=True)
        parts += [_cell(cell, column, place == 0, files) for place, (cell, column) in enumerate(pairs)]
        parts.append("</tr>")
    parts.append("</tbody></table></div>")
    return "".join(parts)


def _head(table: Table) -> str:
    """One row of headings, or two where columns are grouped."""
    grouped = any(column.group for column in table.columns)
    first, second = [], []
    at = 0
    while at < len(table.columns):
        column = table.columns[at]
        span = 1
        while column.group and at + span < len(table.columns) and table.columns[at + span].group == column.group:
            span += 1
        if column.group:
            first.append(f"<th scope=colgroup colspan={span}>{escape(column.group)}</th>")
            second += [_heading(table.columns[at + i], "") for i in range(span)]
        else:
            (first if grouped else second).append(_heading(column, " rowspan=2" if grouped else ""))
        at += span
    rows = [first, second] if grouped else [second]
    return "".join(f"<tr>{''.join(row)}</tr>" for row in rows)


def _heading(column: Column, more: str) -> str:
    kind = "n" if column.number else "t"
    unit = f"<small>{escape(column.unit)}</small>" if column.unit else ""
    label = str(escape(column.label)).replace("+", "+<wbr>")
    return f"<th scope=col class={kind}{more}>{label}{unit}</th>"


def _cell(cell: TableCell, column: Column, first: bool, files: Files) -> str:
    tag = "th scope=row" if first else "td"
    text = str(escape(cell.text)) if cell.text else ""
    if cell.code:
        text = f"<code>{text}</code>"
    target = files.of_cell(cell.link) if cell.link else ""
    if target:
        text = f'<a href="{escape(target)}">{text}</a>'
    badges = "".join(_badge(key) for key in cell.badges)
    text = badges + text if column.number else text + badges
    if cell.below:
        text += f"<small>{escape(cell.below)}</small>"
    sort = f" data-sort={cell.sort:.9g}" if cell.sort is not None else ""
    title = f' title="{escape(one_line(cell.title))}"' if cell.title else ""
    kind = "n" if column.number else "w" if column.wrap else "t"
    return f"<{tag} class={kind}{sort}{title}>{text}</{tag.split()[0]}>"


def _badge(key: str) -> str:
    word, meaning = badge(key)
    kind = key if key in BADGES else "other"
    return f'<span class="badge {kind}" title="{escape(meaning)}">{escape(word)}</span>'
