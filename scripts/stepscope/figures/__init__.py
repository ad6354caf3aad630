"""One module a study, found by the study's name, each with `FIGURES = {name: function(tables) -> Figure}`."""

from importlib import import_module


def figures_of(study: str) -> dict:
    """The figures of a study: name -> function that draws it from the tables."""
    return import_module(f"stepscope.figures.{study}").FIGURES
