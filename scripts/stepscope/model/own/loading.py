"""From a reference to a module: a user's file is imported and its function called."""

import contextlib
import functools
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from stepscope.model.out_of_memory import is_out_of_memory, said_by

from .reference import ModelError, Reference, Unsupported


def load(reference: Reference, keys: dict, context: int) -> object:
    """What the function returns; on the default device."""
    first = (context, reference.name) if reference.name else (context,)
    return called(function_of(reference), reference, keys, *first)


@contextlib.contextmanager
def named_errors(reference: Reference, doing: str) -> Iterator[None]:
    """Within it an error is raised as ModelError: "MODEL: DOING: line of the user's file, type,
    what it says".

    Running out of memory, ModelError, Unsupported and what stops the program pass through as they
    are.
    """
    try:
        yield
    except (ModelError, Unsupported, KeyboardInterrupt):
        raise
    except BaseException as error:
        if is_out_of_memory(error):  # what measures has to see it as it is
            raise
        raise ModelError(f"{reference.text}: {doing}: {told(error, reference)}") from error
    finally:
        # The user's file may close it; what is found is still to be told.
        if getattr(sys.stdout, "closed", False):
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - it stays open


def told(error: BaseException, reference: Reference) -> str:
    """An error in one line, with the last line of the user's file that it came through."""
    said = " ".join(said_by(error).split())[:300]
    text = f"{type(error).__name__}: {said}".removesuffix(": ")
    own = reference.file.resolve()
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == own
    ]
    # The reference names the user's file, and of an architecture none.
    of_file = "" if own.name in reference.text else f" of {own.name}"
    return f"line {lines[-1]}{of_file}: {text}" if lines else text


def function_of(reference: Reference) -> Callable:
    """The function of the user's file. Raises ModelError where there is none."""
    module = imported(reference)
    function = getattr(module, reference.function, None)
    if not callable(function):
        raise ModelError(f"{reference.text}: {reference.file} has no function {reference.function}")
    return function


def called(
    function: Callable, reference: Reference, keys: dict, *first: object, **known: object
) -> object:
    """What the function of the user's file returns for `first`, what it takes of `known`, and the
    keys. Raises ModelError for keys that it does not take, and where it takes more."""
    takes = inspect.signature(function)
    given = {name: value for name, value in known.items() if name in takes.parameters}
    try:
        takes.bind(*first, **given, **keys)
    except TypeError as error:
        wrong = f"does not take the keys {', '.join(keys)}" if keys else "takes no context"
        if str(error).startswith("missing"):
            wrong = "asks for what nothing gives"
        raise ModelError(
            f"{reference.text}: {reference.function}{takes} {wrong}: {error}"
            f" (docs/own-{reference.kind}.md)"
        ) from None
    with named_errors(reference, f"{reference.function}() fails"):
        return function(*first, **given, **keys)


def imported(reference: Reference) -> ModuleType:
    """The user's file as a module. Raises ModelError where it does not import."""
    path = reference.existing_file().resolve()
    with named_errors(reference, f"{reference.file} does not import"):
        return _module(path)


@functools.cache
def _module(path: Path) -> ModuleType:
    """What a file defines, run once in a process; its folder is where its imports look first, as
    Python does for a program."""
    name = f"own_model_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification and specification.loader, "a file that ends in .py has a loader"
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses and torch.compile look modules up by name
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    specification.loader.exec_module(module)
    return module
