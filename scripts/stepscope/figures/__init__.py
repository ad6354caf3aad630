"""Figures of one study: a module or a package of its name, found by that name.

Each has `FIGURES = {name: function(tables) -> Figure}`; a study that draws each of its cells has `cell_figures(tables)`
too, which gives the same for the cells in the tables.
"""

from importlib import import_module


def figures_of(study: str, tables=None) -> dict:
    """The figures of a study, and of the cells in `tables` if given: name -> function that draws it from the tables."""
    module = import_module(f"stepscope.figures.{study}")
    of_cells = getattr(module, "cell_figures", None)
    return module.FIGURES | (of_cells(tables) if of_cells and tables is not None else {})
