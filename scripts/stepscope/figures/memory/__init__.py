"""Figures of the memory study: peaks, what is alive at them, the prediction, and each cell by itself."""

from stepscope.config.training import figure_name
from stepscope.figures.memory.across import draw_peak_categories, draw_peaks, draw_predicted
from stepscope.figures.memory.cell import draw_cell


def cell_figures(tables) -> dict:
    """The figure of each cell of the table, whether it was recorded or not: name -> function that draws it."""
    names = tables["memory"].get("cell", [])
    return {figure_name(name): lambda tables, name=name: draw_cell(tables, name) for name in names}


FIGURES = {
    "memory_peaks": draw_peaks,
    "memory_peak_categories": draw_peak_categories,
    "memory_predicted": draw_predicted,
}
