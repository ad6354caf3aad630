"""A table of a page: some rows of facts, some columns under their labels. The only printer of
tables."""

from collections.abc import Iterable

from . import number_format
from .named import value_at
from .quantity import Quantity

NOTHING = "–"
MARKDOWN = "\\|*_`[]<>#&~$"  # letters that Markdown reads as more than themselves


def table(rows: Iterable[object] | None, columns: str, caption: str = "") -> str | None:
    """A Markdown table, with its caption below it; None without rows, or where the first column
    alone is left.

    columns: `label: name; label: name`, in their order; a name may be a path (`place.size`). A
    column that no row has a value of is left out, and its unit stands behind its label.
    """
    asked = values_of(rows, columns)
    shown = [
        _column(label, values)
        for label, values in asked
        if any(value is not None for value in values)
    ]
    if len(shown) < min(2, len(asked)):
        return None
    lines = zip(*shown, strict=True)
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\n*{caption}*" if caption else text


def values_of(rows: Iterable[object] | None, columns: str) -> list[tuple[str, list]]:
    """(label, values) of each column of a table."""
    facts = list(rows or ())
    found = []
    for column in columns.split(";"):
        label, name = (part.strip() for part in column.split(":"))
        values = [value_at(row, name) for row in facts]
        found.append((label, [None if value == "" else value for value in values]))
    return found


def _column(label: str, values: list) -> list[str]:
    """Label, rule and cells. Quantities of one unit share the scale of the largest; else each has
    its own unit."""
    quantities = [value for value in values if isinstance(value, Quantity)]
    if not quantities:
        texts = [NOTHING if value is None else escaped(str(value)) for value in values]
        return [label, ":---", *texts]
    if len({each.unit for each in quantities}) > 1:
        texts = [NOTHING if value is None else str(value) for value in values]
        return [label, "---:", *texts]
    largest = max(quantities, key=lambda each: abs(each.value))
    divisor, _ = number_format.scale(largest)
    texts = []
    for value in values:
        is_number = isinstance(value, Quantity)
        texts.append(number_format.in_table(value, divisor) if is_number else value or NOTHING)
    return [number_format.heading(label, largest), "---:", *texts]


def escaped(text: str) -> str:
    """Text of a table or a record, so that Markdown shows it as it is."""
    on_one_line = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in MARKDOWN else letter for letter in on_one_line)
