"""What the profile study's figures draw: its cells in order, and what each cell's trace tells of a phase."""

import pandas as pd

from stepscope import colours
from stepscope.figures.facets import cells_in_order
from stepscope.report.kit.order import column, plainly_recorded

NOTHING = "No cell has been profiled: nothing to draw."
MOST_ROWS = 30
PHASES = ("inference", "forward", "backward", "optimizer")
"""The phases that make up a step; in a table, `forward` holds the loss."""


def rows_of(tables, name: str, cell: str | None = None) -> pd.DataFrame:
    """Rows of `profile_NAME`, of one cell if given; without a table, a frame without rows that has the key."""
    table = tables[f"profile_{name}"]
    if "cell" not in table:
        return pd.DataFrame(columns=["cell", "phase", "category", "view", "lane"])
    return table if cell is None else table[table["cell"] == cell]


def by_phase(tables, name: str, value: str) -> dict[tuple[str, str], float]:
    """(cell, phase) → a column of `profile_NAME`, summed where there are several rows, as for several devices."""
    table = rows_of(tables, name)
    if table.empty or value not in table:
        return {}
    return table.dropna(subset=[value]).groupby(["cell", "phase"])[value].sum().to_dict()


def by_category(tables) -> dict[tuple[str, str], dict[str, float]]:
    """(cell, phase) → category → its time in ms a step."""
    table = rows_of(tables, "categories")
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in table.to_dict("records"):
        times = found.setdefault((row["cell"], row["phase"]), {})
        name = row["category"] if row["category"] in colours.CATEGORY else "other"
        times[name] = times.get(name, 0.0) + row["ms_per_step"]
    return found


def traced(tables) -> tuple[pd.DataFrame, dict]:
    """The cells in order, and `by_category`; no cells if not one has a trace."""
    cells, times = cells_in_order(plainly_recorded(tables["profile"])), by_category(tables)
    return (cells, times) if times and len(cells) else (cells[:0], {})


def on_host(cells: pd.DataFrame) -> bool:
    """Whether operators stand for kernels in all cells: they ran on a CPU."""
    return set(column(cells, "device").dropna()) == {"cpu"}


def words(cells: pd.DataFrame, gpu: str, cpu: str) -> str:
    """What is drawn, in words: `gpu`, or `cpu` where operators stand for kernels, or both."""
    if on_host(cells):
        return cpu
    devices = set(column(cells, "device").dropna())
    return f"{gpu}; on a CPU, {cpu}" if "cpu" in devices else gpu
