"""The values of options that are modules: listed, loaded by name, and what they say of themselves.

They are imported here and nowhere else, so that a cell depends only on the value that it names.
What a value says of itself is read from its file's text, without importing it and torch with it.
"""

import ast
import functools
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from .about import About, Attention, Loss, Optimizer, Precision

# option -> package that holds one module for each of the option's values
PACKAGES = {
    "precision": "stepscope.model.precisions",
    "attention": "stepscope.model.attention",
    "compile": "stepscope.model.compilation",
    "optimizer": "stepscope.model.optimizers",
    "loss": "stepscope.model.losses",
}
KINDS: dict[str, type[About]] = {
    "precision": Precision,
    "attention": Attention,
    "compile": About,
    "optimizer": Optimizer,
    "loss": Loss,
}
Said = TypeVar("Said")


class Unsupported(Exception):
    """An option that a model, or a machine, cannot have: the reason, in one line."""


def names(option: str) -> list[str]:
    """Names that `option` can take, sorted. Raises ValueError when there is no such option."""
    return sorted(module.name for module in pkgutil.iter_modules([str(_folder(option))]))


def module_of(option: str, name: str) -> str:
    """The dotted name of the module that implements `name` of `option`.

    Raises ValueError, listing what exists, when the option or the name is unknown.
    """
    if name not in names(option):
        raise ValueError(f"no {option} {name!r}; there are: {', '.join(names(option))}")
    return f"{PACKAGES[option]}.{name}"


def load(option: str, name: str) -> ModuleType:
    """That module, e.g. `load("attention", "sdpa")`. Raises ValueError as module_of() does."""
    return importlib.import_module(module_of(option, name))


def about(option: str, name: str) -> About:
    """What a value says of itself. Raises ValueError as said() does."""
    return said(option, name, KINDS[option])


def said(option: str, name: str, kind: type[Said]) -> Said:
    """What the value's module sets to a `kind`, read from the module's text: its `ABOUT =
    Optimizer(label="Muon", ...)`, or its `FORMAT = Format(...)`.

    Raises ValueError as module_of() does; or, naming the file, where that is missing or wrong.
    """
    module_of(option, name)
    path = _folder(option) / f"{name}.py"
    constant = "ABOUT" if issubclass(kind, About) else kind.__name__.upper()
    calls = filter(None, (call_of(node, constant) for node in _tree(path).body))
    call = next((each for each in calls if ast.unparse(each.func) == kind.__name__), None)
    if call is None:
        expected = f"{constant} = {kind.__name__}(...)"
        raise ValueError(f"{path}: there is no {expected} at its top level; add it")
    try:
        return kind(**{str(each.arg): ast.literal_eval(each.value) for each in call.keywords})
    except TypeError as error:
        raise ValueError(f"{path}: {constant}: {error}") from None
    except ValueError:
        raise ValueError(f"{path}: {constant} takes literals alone; it is read, not run") from None


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


def call_of(node: ast.stmt, constant: str) -> ast.Call | None:
    """The call whose result a statement gives to a constant; None if it does anything else."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if name == constant:
            return call
    return None


def _folder(option: str) -> Path:
    """The folder of an option's package."""
    if option not in PACKAGES:
        raise ValueError(f"no option {option!r}; there are: {', '.join(sorted(PACKAGES))}")
    (folder,) = importlib.import_module(PACKAGES[option]).__path__
    return Path(folder)
