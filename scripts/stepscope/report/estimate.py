"""The data page's table of what the plan expected a run to take, beside what it took."""

from stepscope.config.estimate import BASES, SAID
from stepscope.report.data.estimate import by_study
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table, TableCell
from stepscope.tables.reader import Tables

_NOTE = (
    "Seconds of the cells, one after another, of those that the last run to measure them had an estimate of: "
    + "; ".join(f"{name}: by {words}" for name, words in SAID.items())
    + "."
)


def estimate_table(tables: Tables) -> Table | None:
    """A row a study; None where no run wrote down what it expected."""
    rows = by_study(tables)
    columns = [
        *table.point(*table.varying(rows, ["hardware"])),
        Column("study", number=False, value="study"),
        Column("cells", value="cells", show=formatting.count),
        Column("expected", "s", value="expected_s"),
        Column("took", "s", value="taken_s"),
        Column("took / expected", value=lambda row: row["taken_s"] / row["expected_s"]),
        Column("by", number=False, value=_bases),
    ]
    return table.build(
        "estimate", "What the plan expected the cells to take, and what they took.", columns, rows, [_NOTE]
    )


def _bases(row: dict) -> TableCell:
    """`same 3, formula 1`: how many cells rest on what."""
    return TableCell(", ".join(f"{basis} {row[basis]}" for basis in BASES if row[basis]))
