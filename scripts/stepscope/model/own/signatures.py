"""What a function of a user's file takes, told without running the file. Standard library only."""

import ast
import inspect
from collections.abc import Iterable
from inspect import Parameter
from typing import Any

from stepscope.model.own.reference import ModelError, Reference

GIVEN = ("context", "batch", "device", "seed")  # what the function of a step may take beside keys
# A file that has one of these names may have functions that its text does not show.
_MAKERS = {"*", "__getattr__", "globals", "vars", "exec", "eval", "setattr"}


def require_taken(reference: Reference, takes: inspect.Signature, keys: Iterable[str]) -> None:
    """Raise ModelError for keys that the function of a model or a step does not take, and where it
    takes more."""
    first = [None]
    known: list[str] = []
    what = "the context and the keys"
    remedy = "its first parameter is the context, further keys are its others"
    if reference.kind == "step":
        first = []
        what = "the keys"
        known = [name for name in GIVEN if name in takes.parameters]
        remedy = f"beside keys it may take {', '.join(GIVEN)}"
    try:
        takes.bind(*first, **dict.fromkeys([*known, *keys]))
    except TypeError as error:
        raise ModelError(
            f"{reference.text}: {reference.function}{takes} does not take {what}"
            f" {', '.join(keys) or '(none)'}: {error}; {remedy}"
        ) from None


def require_function(reference: Reference, keys: Iterable[str]) -> None:
    """Raise ModelError where the text of the user's file shows that it has no such function, or
    that this does not take the keys."""
    assert reference.file is not None, "a reference without a name has a file"
    tree = ast.parse(reference.file.read_bytes())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    named = [node for node in functions if node.name == reference.function]
    names = [name for node in ast.walk(tree) for name in _names(node)]
    if len(named) == names.count(reference.function) == 1 and not named[0].decorator_list:
        require_taken(reference, _signature(named[0]), keys)
    elif reference.function not in names and _MAKERS.isdisjoint(names):
        raise no_function(reference, [node.name for node in functions])


def no_function(reference: Reference, there: Iterable[str]) -> ModelError:
    """That the file has others than the one that is asked for."""
    names = ", ".join(name for name in there if name[0] != "_") or "none"
    return ModelError(
        f"{reference.text}: {reference.file} has no function {reference.function}; it has: {names}"
    )


def _names(node: ast.AST) -> list[str]:
    """The names that a node of a file itself uses, of which it may give something to each."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.alias():
            return [(node.asname or node.name).partition(".")[0]]
        case ast.Name():
            return [node.id]
    return []


def _signature(function: ast.FunctionDef) -> inspect.Signature:
    """Of a function as it is written; nothing of it is computed: what is no constant is `...`."""
    given = function.args
    by_place = [*given.posonlyargs, *given.args]
    required = len(by_place) - len(given.defaults)
    defaults = [*[None] * required, *given.defaults, *given.kw_defaults]
    kinds: list[Any] = [Parameter.POSITIONAL_ONLY] * len(given.posonlyargs)
    kinds += [Parameter.POSITIONAL_OR_KEYWORD] * len(given.args)
    kinds += [Parameter.KEYWORD_ONLY] * len(given.kwonlyargs)
    rows: list[tuple[ast.arg, Any, ast.expr | None]]
    rows = list(zip([*by_place, *given.kwonlyargs], kinds, defaults, strict=True))
    if given.vararg:
        rows.insert(len(by_place), (given.vararg, Parameter.VAR_POSITIONAL, None))
    if given.kwarg:
        rows.append((given.kwarg, Parameter.VAR_KEYWORD, None))
    return inspect.Signature(
        [Parameter(each.arg, kind, default=_value(default)) for each, kind, default in rows]
    )


def _value(default: ast.expr | None) -> object:
    if default is None:
        return Parameter.empty
    return default.value if isinstance(default, ast.Constant) else ...
