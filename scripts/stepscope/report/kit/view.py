"""A table of a page: some rows of facts, some columns under their labels. The only printer of
tables."""

from stepscope.report.kit import number_format
from stepscope.report.kit.quantity import Quantity

NOTHING = "–"


def table(rows, columns: str, caption: str = "") -> str | None:
    """A Markdown table, with its caption below it; None without rows, or where the first column
    alone is left.

    columns: `label: name; label: name`, in their order; a name may be a path (`place.size`). A
    column that no row has a value of is left out, and its unit stands behind its label.
    """
    named = [[part.strip() for part in column.split(":")] for column in columns.split(";")]
    found = [(label, [_value(row, name) for row in rows or ()]) for label, name in named]
    shown = [
        _column(label, values)
        for label, values in found
        if any(value is not None for value in values)
    ]
    if len(shown) < min(2, len(named)):
        return None
    text = "\n".join(f"| {' | '.join(line)} |" for line in zip(*shown, strict=True))
    return f"{text}\n\n*{caption}*" if caption else text


def _value(row: object, path: str) -> object:
    for name in path.split("."):
        row = (
            None if row is None else row.get(name) if isinstance(row, dict) else getattr(row, name)
        )
    return None if row == "" else row


def _column(label: str, values: list) -> list[str]:
    """Label, rule and cells. Quantities of one unit share the scale of the largest; else each has
    its own unit."""
    quantities = [value for value in values if isinstance(value, Quantity)]
    if not quantities:
        return [
            label,
            ":---",
            *(NOTHING if value is None else escaped(str(value)) for value in values),
        ]
    if len({each.unit for each in quantities}) > 1:
        return [label, "---:", *(NOTHING if value is None else str(value) for value in values)]
    largest = max(quantities, key=lambda each: abs(each.value))
    divisor, _ = number_format.scale(largest)
    cells = (
        number_format.in_table(value, divisor) if isinstance(value, Quantity) else value or NOTHING
        for value in values
    )
    return [number_format.heading(label, largest), "---:", *cells]


def escaped(text: str) -> str:
    """Text of a table or a record, so that Markdown shows it as it is."""
    return "".join(
        f"\\{letter}" if letter in "\\|*_`[]<>#&~$" else letter for letter in " ".join(text.split())
    )
