"""Each table as files of its own, as it is shown: CSV, LaTeX with booktabs, Typst."""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from stepscope.report.kit.blocks import Column, Table, TableCell, badge
from stepscope.report.kit.escaping import one_line

FOLDER = "tables"  # beside the pages
KINDS = {"csv": "CSV", "tex": "LaTeX", "typ": "Typst"}  # CSV is always among those of a page
_LONG = 45  # rows; LaTeX breaks a longer table over pages
# What LaTeX would read as markup, and what its default fonts lack.
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # would be an argument of the line break before it
    "]": "{]}",
    "×": r"\(\times\)",
    "±": r"\(\pm\)",
    "−": r"\(-\)",
    "·": r"\(\cdot\)",
    "√": r"\(\surd\)",
    "≈": r"\(\approx\)",
    "≤": r"\(\le\)",
    "≥": r"\(\ge\)",
    "→": r"\(\to\)",
    "²": r"\(^2\)",
    "³": r"\(^3\)",
    "–": r"\textendash{}",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "µ": r"\textmu{}",
} | {character: rf"\{character}" for character in "&%$#_{}"}


class Exports:
    """The files of all tables of the pages, a stem each; a table that both pages show has one.

    kinds: those of KINDS that are written.
    """

    def __init__(self, kinds: Sequence[str] = tuple(KINDS)) -> None:
        self.kinds = kinds
        self.tables: dict[str, Table] = {}

    def add(self, table: Table) -> str:
        """The stem of the table's files: its name, in letters that any system takes."""
        base = re.sub(r"[^A-Za-z0-9.=-]+", "_", table.name).strip("._") or "table"
        stem, count = base, 2
        while stem in self.tables and _content(self.tables[stem]) != _content(table):
            stem, count = f"{base}-{count}", count + 1
        self.tables[stem] = table
        return stem

    def files(self) -> Iterator[tuple[str, str]]:
        """(path beside the pages, content) of each."""
        write = {"csv": as_csv, "tex": as_latex, "typ": as_typst}
        for stem, table in self.tables.items():
            for kind in self.kinds:
                yield f"{FOLDER}/{stem}.{kind}", write[kind](table)


def _content(table: Table) -> tuple:
    """What a table's files hold."""
    return table.caption, [heading(column) for column in table.columns], table.rows, table.notes


def heading(column: Column) -> str:
    """`step (ms)`; the group, where there is one, stands first."""
    label = f"{column.group}: {column.label}" if column.group else column.label
    return one_line(f"{label} ({column.unit})" if column.unit else label)


def remark(cell: TableCell) -> str:
    """What stands below a cell and its badges: `[1.40, 1.46]; OOM`."""
    return "; ".join(filter(None, [one_line(cell.below), *(badge(key)[0] for key in cell.badges)]))


def as_csv(table: Table) -> str:
    """A row a row, numbers in the units of their headings; remarks in a column of their own after that of the cells."""
    remarks = [any(remark(row[at]) for row in table.rows) for at in range(len(table.columns))]
    file = io.StringIO()
    lines = csv.writer(file, lineterminator="\n")
    names = [heading(column) for column in table.columns]
    lines.writerow([name for at, own in enumerate(names) for name in [own, *[f"{own}, remark"] * remarks[at]]])
    for row in table.rows:
        lines.writerow([text for at, cell in enumerate(row) for text in [_value(cell), *[remark(cell)] * remarks[at]]])
    return file.getvalue()


def _value(cell: TableCell) -> str:
    """What a program reads as a number where the page shows one: `79227` for `79,227`; else the whole text."""
    text = one_line(cell.text)
    number = text.replace(",", "").replace("\N{MINUS SIGN}", "-")
    return number if re.fullmatch(r"-?\d+(\.\d+)?", number) else one_line(cell.title) or text


def _shown(cell: TableCell) -> str:
    """A cell as the page shows it, in one line."""
    text, more = one_line(cell.text), remark(cell)
    if not (text and more):
        return text or more
    return f"{text} {more}" if more.startswith("[") else f"{text} ({more})"


def as_latex(table: Table) -> str:
    r"""A `table`, or a `longtable` that breaks over pages; needs the packages booktabs and longtable, and UTF-8."""
    spec = "".join("r" if column.number else "l" for column in table.columns)
    is_long = len(table.rows) > _LONG
    caption = rf"\caption{{{latex(table.caption)}}}"
    head = [r"\toprule", *_latex_head(table.columns), r"\midrule"]
    body = [f"{' & '.join(latex(_shown(cell)) for cell in row)} \\\\" for row in table.rows]
    notes = [rf"\par\footnotesize {latex(note)}" for note in table.notes]
    if is_long:
        lines = [rf"\begin{{longtable}}{{{spec}}}", rf"{caption} \\", *head, r"\endhead", *body, r"\bottomrule"]
        lines += [r"\end{longtable}", *notes]
    else:
        lines = [r"\begin{table}", r"\centering", caption, rf"\begin{{tabular}}{{{spec}}}", *head, *body]
        lines += [r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}"]
    return "\n".join(["% Packages: booktabs, longtable.", *lines]) + "\n"


def _latex_head(columns: list[Column]) -> list[str]:
    """One line of headings, or two with rules below the groups."""
    names = " & ".join(latex(one_line(f"{each.label} ({each.unit})" if each.unit else each.label)) for each in columns)
    if not any(column.group for column in columns):
        return [rf"{names} \\"]
    groups, rules, at = [], [], 1
    for name, span in spans(columns):
        groups.append(rf"\multicolumn{{{span}}}{{c}}{{{latex(name)}}}" if name else " & ".join([""] * span))
        rules += [rf"\cmidrule(lr){{{at}-{at + span - 1}}}"] if name else []
        at += span
    return [rf"{' & '.join(groups)} \\", "".join(rules), rf"{names} \\"]


def spans(columns: list[Column]) -> list[tuple[str, int]]:
    """[(group, how many neighbouring columns it stands above)]; columns without a group one by one."""
    found: list[tuple[str, int]] = []
    for at, column in enumerate(columns):
        if column.group and at and columns[at - 1].group == column.group:
            found[-1] = (column.group, found[-1][1] + 1)
        else:
            found.append((column.group, 1))
    return found


def latex(text: object) -> str:
    """Text that LaTeX shows as it is."""
    shown = "".join(_LATEX.get(character, character) for character in one_line(text))
    return shown.replace("--", "-{}-")  # two hyphens, as in `--precision`, are no dash


def as_typst(table: Table) -> str:
    """A figure with a table; every text is a string, in which Typst reads no markup."""
    align = ", ".join("right" if column.number else "left" for column in table.columns)
    lines = ["#figure(", f"  caption: [#{typst(table.caption)}],", "  table(", f"    columns: {len(table.columns)},"]
    lines.append(f"    align: ({align},),")
    lines.append(f"    table.header({', '.join(typst(heading(column)) for column in table.columns)}),")
    lines += [f"    {', '.join(typst(_shown(cell)) for cell in row)}," for row in table.rows]
    lines += ["  ),", ")", *(f"#text(size: 0.8em, {typst(note)})" for note in table.notes)]
    return "\n".join(lines) + "\n"


def typst(text: object) -> str:
    """A string literal."""
    return '"' + one_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
