"""The chapter's table and figure."""

from statistics import median

from stepscope.report.chapters.machines.compared import speeds, what
from stepscope.report.data.points import Grid
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Picture, Table
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.kit.compare import FASTER, NOT_COMPARABLE, SLOWER, ratio_text
from stepscope.report.kit.finding import enough


def speeds_table(grid: Grid) -> Table | None:
    """A row a machine and precision: the speed over the baseline, verdicts, and the ratios of the rates."""
    rows = [
        {"machine": other, "precision": precision, "found": [each for _, each in found],
         "limits": grid.limits(other, precision)}
        for other in grid.others
        for precision in grid.precisions
        if (found := speeds(grid, other, precision))
    ]  # fmt: skip
    measures = {"lowest": min, "median": median, "highest": max}
    columns = [
        Column("machine", number=False, value="machine"),
        Column("precision", number=False, value="precision"),
        Column("cells", value=lambda row: len(row["found"]), show=formatting.count),
        *(
            Column(
                name,
                group="times as fast",
                value=lambda row, of=of: of(each.ratio for each in row["found"]),
                show=ratio_text,
            )
            for name, of in measures.items()
        ),
        *(
            Column(
                word,
                group="cells that are",
                value=lambda row, word=word: _count(row, word),
                show=formatting.count,
                optional=True,
            )
            for word in (FASTER, SLOWER, NOT_COMPARABLE)
        ),
        Column(
            "matrix products",
            group="ratio of rates",
            value=lambda row: row["limits"].arithmetic,
            show=ratio_text,
            optional=True,
        ),
        Column(
            "memory", group="ratio of rates", value=lambda row: row["limits"].memory, show=ratio_text, optional=True
        ),
    ]
    left = f" {len(rows) - MOST_ROWS:,} more rows stand with the data." if len(rows) > MOST_ROWS else ""
    caption = (
        f"How many times as fast {what(grid)} is as on {grid.baseline}, beside the ratios of the machines' rates.{left}"
    )
    return table.build("chapter-machines", caption, columns, rows[:MOST_ROWS], legend=False)


def _count(row: dict, word: str) -> int | None:
    """None where none has a verdict."""
    judged = [each for each in row["found"] if enough(comparison=each)]
    return sum(each.verdict == word for each in judged) if judged else None


def picture(grid: Grid) -> Picture:
    """The figure of the section: speed over the baseline by size."""
    caption = (
        f"A line near the dashed level follows the arithmetic, near the dotted one the memory; near 1 neither sets the "
        f"time. Times as fast as on {grid.baseline}, over the model size; a column a precision, a line a context. A "
        "hollow cross ran out of memory on one of both."
    )
    words = "Line charts of the speed-up over the baseline by model size, a column of panels for each precision."
    return Picture("hardware_speedup", caption, words)
