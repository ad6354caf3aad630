"""The table of sizes."""

from stepscope.report.chapters.setup.model import sizes
from stepscope.report.data.own_models import OwnModel, is_own, longest
from stepscope.report.data.profile_parts import product_flops, shape_of
from stepscope.report.data.timing_grid import TimingGrid
from stepscope.report.kit import formatting, table
from stepscope.report.kit.blocks import Column, Table
from stepscope.report.kit.chapter import MOST_ROWS
from stepscope.report.studies.models.tables import models_table


def sizes_table(grid: TimingGrid) -> Table | None:
    """A row a size, with tokens and FLOP of a step at the longest context; of many the largest."""
    every = sizes(grid)
    if not every:
        return None
    context = max(row["context"] for row in grid.rows if not is_own(row))
    rows = [row | {"context": context} for row in every[-MOST_ROWS:]]
    columns = [
        Column("size", number=False, value="size"),
        *table.point("parameters"),
        *(Column(name, value=name, show=formatting.count) for name in ("d_model", "d_ff", "num_layers", "num_heads")),
        Column("d_head", value=lambda row: shape_of(row).d_head, show=formatting.count),
        Column("tokens", value=lambda row: row["batch"] * context, show=formatting.count),
        Column("FLOP of a step", value=lambda row: table.number(product_flops(row, "step"), formatting.flop)),
    ]
    left = f" {len(every) - MOST_ROWS:,} smaller ones stand with the data." if len(every) > MOST_ROWS else ""
    caption = (
        f"The sizes. Tokens and FLOP of a step are those of context {context:,.0f}, batch {rows[0]['batch']:,.0f}, "
        f"vocabulary {rows[0]['vocab_size']:,.0f}.{left}"
    )
    return table.build("chapter-setup-sizes", caption, columns, rows, legend=False)


def own_models_table(models: list[OwnModel]) -> Table | None:
    """A row a model of one's own, at the longest context; of many the largest."""
    every = longest(models)
    left = f" {len(every) - MOST_ROWS:,} smaller ones stand with the data." if len(every) > MOST_ROWS else ""
    caption = (
        "Models of one's own: what was built, and how inputs and loss were chosen. FLOP of a forward and a backward "
        f"pass as PyTorch counts them and by formula, at each model's longest context.{left}"
    )
    return models_table("chapter-setup-models", every, caption, MOST_ROWS)
