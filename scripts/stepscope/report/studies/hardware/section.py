"""The part of the report that sets machines beside each other. It has no cells of its own: it compares the studies'."""

from stepscope.report.data import side_by_side
from stepscope.report.data.machines import labels
from stepscope.report.data.points import Grid
from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.finding import Finding, texts
from stepscope.report.studies.hardware import findings as hardware_findings
from stepscope.report.studies.hardware import tables, tables_studies
from stepscope.tables.reader import Tables


def applies(found: Tables) -> bool:
    """With one machine there is nothing to compare, and the report does without the section."""
    return len(labels(found)) > 1


def findings(found: Tables) -> list[Finding]:
    """What the summary says."""
    return hardware_findings.findings(found, Grid(found)) if applies(found) else []


def context(found: Tables) -> dict:
    """What report/sections/hardware.md.j2 is filled with."""
    grid = Grid(found)
    inverted = side_by_side.inversions(grid)
    return {
        "machines": tables.machines_table(found, grid.labels),
        "picture": _picture(grid),
        "alone": _alone(grid),
        "summary": tables.summary_table(grid),
        "grid": tables.grid_table(grid),
        "phases": tables.phases_table(grid),
        "mixed": tables.mixed_table(grid),
        "inversions": tables.inversions_table(inverted),
        "inverted": texts(hardware_findings.of_inversions(grid, inverted)),
        "attention": tables_studies.attention_tables(side_by_side.attention(found, grid.labels)),
        "memory": tables_studies.memory_table(side_by_side.memory(found, grid.labels)),
        "ladder": tables_studies.ladder_table(side_by_side.ladder(found, grid.labels)),
    }


def _alone(grid: Grid) -> str:
    """How many cells no second machine has, which nothing here can be said of."""
    count = len(grid.every) - len(grid.points)
    if not count:
        return ""
    which = "1 cell of the timing study is" if count == 1 else f"{count:,} cells of the timing study are"
    return f"{which} in the grid of one machine alone and left out here."


def _picture(grid: Grid) -> Picture | None:
    """The figure; None where no cell has a time on two machines."""
    if not any(grid.speed(point, label, phase) for phase in grid.phases for point, label in grid.pairs):
        return None
    are_judged = any(
        speed and speed.has_interval
        for phase in grid.phases
        for point, label in grid.pairs
        for speed in [grid.speed(point, label, phase)]
    )
    intervals = ", with the ratio's 95 % interval" if are_judged else ", of single processes"
    caption = (
        f"How many times as fast the same cell runs as on {grid.baseline}, over the model size: a column a precision, "
        f"a line a context{intervals}. Level lines: the ratios of the machines' rates "
        "of arithmetic in that precision (dashed) and of their bandwidths (dotted). Where a line lies at neither, but "
        "near 1, something sets the time that both machines share, such as the host's launches. A hollow cross at the "
        "top marks a size that ran out of memory on one of both."
    )
    words = "Line charts of the speed-up over the baseline by model size, a column of panels for each precision."
    return Picture("hardware_speedup", caption, words)
