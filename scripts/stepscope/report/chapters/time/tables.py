"""The chapter's tables: steps by size and context, and phases beside what they were predicted to take; its figures."""

from functools import partial

from stepscope.report.data.predicted import optimizer_ms, products_ms
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.timing_grid import TimingGrid
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Picture, Table, TableCell
from stepscope.report.kit.captions import diamonds, fixed_parameters, hollow
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import main_grid
from stepscope.report.studies.page_one.tables import time_cell
from stepscope.tables.reader import Tables

MOST_CONTEXTS = 4


def steps_table(grid: TimingGrid) -> Table | None:
    """A row a size, a column a context, a group a precision: milliseconds of a step."""
    if not any(grid.timed(name) for name in grid.shown):
        return None
    contexts = _spread(grid.contexts)
    columns = [
        *table.point("size", "parameters"),
        *(
            Column(f"{context:,.0f}", group=f"{name}, context (step in ms)", value=partial(_step, grid, context, name))
            for name in grid.shown
            for context in contexts
        ),
    ]
    caption = f"A training step by size and context, median in ms. {_fixed(grid)}"
    return table.build("chapter-time-steps", caption, columns, grid.sizes[-MOST_ROWS:], meanings=table.PLAIN_MEANINGS)


def _spread(contexts: list[float]) -> list[float]:
    """The first, the last, and some between."""
    if len(contexts) <= MOST_CONTEXTS:
        return contexts
    return [contexts[round(at * (len(contexts) - 1) / (MOST_CONTEXTS - 1))] for at in range(MOST_CONTEXTS)]


def _step(grid: TimingGrid, context: float, precision: str, size: dict) -> TableCell:
    row = grid.at(size["size"], context, precision)
    if row is None:
        return table.NOTHING
    if known(row.get("step_median_ms")):
        return time_cell(row)
    return table.lost_of([row.get("step_status") or row.get("status")])


def predicted_table(tables: Tables, grid: TimingGrid) -> Table | None:
    """A row a size and precision at one context: its phases, and what FLOP and bytes alone would take."""
    context = grid.fullest_context()
    if context is None:
        return None
    most = MOST_ROWS // len(grid.shown)
    rows = [row for name in grid.shown for row in grid.timed(name, context=context)[-most:]]
    columns = [
        *table.point("precision", "size"),
        *(Column(name, group="measured (ms)", value=f"{name}_median_ms") for name in ("forward", "backward")),
        Column("backward / forward", value=_ratio, show=lambda value: f"{value:.2f}"),
        Column("measured", group="optimizer (ms)", value="optimizer_median_ms"),
        Column("by bytes", group="optimizer (ms)", value=partial(optimizer_ms, tables), optional=True),
        Column("measured", group="step (ms)", value="step_median_ms"),
        Column("by FLOP", group="step (ms)", value=partial(products_ms, tables), optional=True),
        Column("by FLOP over measured", "%", value=partial(_share, tables), optional=True),
    ]
    caption = (
        "What FLOP and bytes predict, and what was measured: FLOP of a step at the measured rate of a large matrix "
        f"product, the optimizer's bytes at that of a large copy. Context {context:,.0f}; {_fixed(grid)}"
    )
    return table.build("chapter-time-predicted", caption, columns, rows, grouped=True)


def _ratio(row: dict) -> float | None:
    both = row.get("backward_median_ms"), row.get("forward_median_ms")
    return both[0] / both[1] if all(map(known, both)) else None


def _share(tables: Tables, row: dict) -> float | None:
    predicted = products_ms(tables, row)
    return 100 * predicted / row["step_median_ms"] if predicted else None


def _fixed(grid: TimingGrid) -> str:
    """`nvidia-h100; batch 4.`."""
    row = grid.rows[0]
    batch = f"; batch {formatting.count(row['batch'])}" if known(row.get("batch")) else ""
    options = f"; {row['options']}" if row.get("options") else ""
    return f"{row['hardware']}{batch}{options}."


def pictures(machine: Machine, grid: TimingGrid) -> tuple[Picture | None, Picture | None]:
    """(time over the parameters, time over the context); None where there is one size, or one context."""
    grid_of_all = main_grid(machine.tables["timing"])
    end, doubtful = fixed_parameters(grid_of_all), hollow(grid_of_all)
    by_size = Picture(
        "timing_by_size",
        "A line that rises with the size is set by its work; where it is flat, something else sets the time, such as "
        "launches. A line a precision; a hollow cross at the top edge ran out of memory. "
        + " ".join(filter(None, [doubtful, diamonds(grid_of_all), end])),
        "Line charts of the median time in ms over the parameter count, by context and phase, a line a precision.",
    )
    by_context = Picture(
        "timing_by_context",
        "Both axes are logarithmic: a slope of one is time in proportion to the tokens, a flat line time that does not "
        "depend on them. A line a precision; a hollow cross ran out of memory. "
        + " ".join(filter(None, [doubtful, end])),
        "Line charts of the median time in ms over the context length, by size and phase, a line a precision.",
    )
    several = len(grid.sizes) > 1, len(grid.contexts) > 1
    return tuple(picture if shown else None for picture, shown in zip((by_size, by_context), several, strict=True))
