"""Implementations that are chosen by name on the command line.

They are imported here and nowhere else, so that a cell depends only on the implementation that it
names.
"""

import importlib
import pkgutil
from types import ModuleType

# option -> package that holds one module for each of the option's values
CHOSEN_BY_NAME = {
    "attention": "stepscope.model.attention",
    "optimizer": "stepscope.model.optimizers",
    "precision": "stepscope.model.precisions",  # of those that torch has no context for
}


def names(option: str) -> list[str]:
    """Names that `option` can take, sorted. Raises ValueError when there is no such option."""
    if option not in CHOSEN_BY_NAME:
        raise ValueError(f"no option {option!r}; there are: {', '.join(sorted(CHOSEN_BY_NAME))}")
    package = importlib.import_module(CHOSEN_BY_NAME[option])
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def load(option: str, name: str) -> ModuleType:
    """The module that implements `name` of `option`, e.g. `load("attention", "sdpa")`.

    Raises ValueError, listing what exists, when the option or the name is unknown.
    """
    if name not in names(option):
        raise ValueError(f"no {option} {name!r}; there are: {', '.join(names(option))}")
    return importlib.import_module(f"{CHOSEN_BY_NAME[option]}.{name}")
