"""Implementations that are chosen by name on the command line.

They are imported here and nowhere else, so that a cell depends only on the implementation that it names.
"""

import importlib
import pkgutil
from types import ModuleType

from stepscope import axes
from stepscope.axes import CHOSEN_BY_NAME, IMPLEMENTATIONS

MODELS = "stepscope.measure.models"  # a module for each kind of model


def modules_of(spec: dict) -> list[str]:
    """Names of the modules that a cell loads by name, sorted: what its code digest covers beside what its program
    imports. A model of one's own at neutral attention runs what it was written with, none of ours."""
    attention = CHOSEN_BY_NAME["attention"]
    if spec["study"] == "attention":
        return sorted({f"{attention}.{IMPLEMENTATIONS[variant['name']].module}" for variant in spec["variants"]})
    if spec["study"] == "precision":
        return [f"{attention}.naive"] if spec["probe"] == "autocast" else []
    if "model" not in spec and "num_layers" not in spec:
        return []
    found = {f"{MODELS}.{'own' if 'model' in spec else 'transformer'}"}
    for variant in spec.get("variants", [spec]):
        for option, package in CHOSEN_BY_NAME.items():
            if option != "attention" or option in variant or "model" not in spec:
                found.add(f"{package}.{axes.option(variant, option)}")
    return sorted(found)


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
