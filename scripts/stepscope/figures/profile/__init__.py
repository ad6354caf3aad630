"""Figures of the profile study: matrix products, launches, what a step is bound by, and each cell by itself."""

from stepscope.config.training import figure_name
from stepscope.figures.profile.bound import draw_bound
from stepscope.figures.profile.cell import draw_cell
from stepscope.figures.profile.kernels import draw_categories, draw_launches, draw_matmul_share


def cell_figures(tables) -> dict:
    """The figure of each cell of the table, whether it could be profiled or not: name -> function that draws it."""
    cells = tables["profile"]
    names = cells.get("cell", [])
    return {figure_name(name): lambda tables, name=name: draw_cell(tables, name) for name in names}


FIGURES = {
    "profile_matmul_share": draw_matmul_share,
    "profile_launches": draw_launches,
    "profile_bound": draw_bound,
    "profile_categories": draw_categories,
}
