"""From a reference to a module: a user's file is imported and its function called, or an
architecture of transformers is made from its configuration.
"""

import contextlib
import difflib
import functools
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from stepscope.model.out_of_memory import is_out_of_memory, said_by
from stepscope.model.own.reference import ModelError, Reference, Unsupported

_loaded: dict[Path, ModuleType] = {}
# What a function takes, by what it builds.
_TAKES = {
    "model": "its first parameter is the context, further keys are its others",
    "step": "beside keys it may take context, batch, device, seed",
}


def load(reference: Reference, keys: dict, context: int) -> object:
    """What the user's function returns, or the module of the architecture; on the default
    device."""
    if reference.name:
        return _architecture(reference, keys, context)
    return called(function_of(reference), reference, keys, context)


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
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {type(error).__name__}: {error.msg}"
    said = " ".join(said_by(error).split())[:300]
    text = f"{type(error).__name__}: {said}".removesuffix(": ")
    own = reference.file.resolve() if reference.file else None
    if isinstance(error, TypeError) and "forward() missing" in said:
        text += "; let build() return a make_batch that gives it"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == own
    ]
    return f"line {lines[-1]}: {text}" if lines else text


def function_of(reference: Reference) -> Callable:
    """The function of the user's file. Raises ModelError where there is none."""
    module = imported(reference)
    function = getattr(module, reference.function, None)
    if not callable(function):
        functions = filter(inspect.isfunction, vars(module).values())
        own = [each.__name__ for each in functions if each.__module__ == module.__name__]
        there = ", ".join(name for name in own if name[0] != "_") or "none"
        raise ModelError(
            f"{reference.text}: {reference.file} has no function {reference.function}; it has:"
            f" {there}"
        )
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
        raise ModelError(
            f"{reference.text}: {reference.function}{takes} does not take the keys"
            f" {', '.join(keys) or '(none)'}: {error}; {_TAKES[reference.kind]}"
        ) from None
    with named_errors(reference, f"{reference.function}() fails"):
        return function(*first, **given, **keys)


def imported(reference: Reference) -> ModuleType:
    """The user's file as a module, run once in a process; its folder is where its imports look
    first, as Python does for a program."""
    path = reference.existing_file().resolve()
    if path in _loaded:
        return _loaded[path]
    name = f"own_model_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification and specification.loader, "a file that ends in .py has a loader"
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses and torch.compile look modules up by name
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    with named_errors(reference, f"{reference.file} does not import"):
        specification.loader.exec_module(module)
    _loaded[path] = module
    return module


def _architecture(reference: Reference, keys: dict, context: int) -> nn.Module:
    """A model of transformers with random weights; nothing is downloaded."""
    if importlib.util.find_spec("transformers") is None:
        raise ModelError(
            f"{reference.text}: transformers is not installed; pip install the version in"
            " requirements-test.txt"
        )
    keys = dict(keys)
    attention = keys.pop("attn_implementation", None)
    config = _config(reference, keys)
    if attention:
        config._attn_implementation = attention
    longest = getattr(config, "max_position_embeddings", None)
    if isinstance(longest, int) and longest < context:
        raise ModelError(
            f"{reference.text}: max_position_embeddings is {longest}, less than the context of"
            f" {context}; add the key max_position_embeddings: {context}"
        )
    made_by = _class(reference, config)
    with named_errors(reference, f"{made_by.__name__} cannot be built"):
        return made_by(config)


def _config(reference: Reference, keys: dict):
    """The configuration with the keys in place of its values. Raises ModelError for keys that it
    does not have."""
    from transformers import CONFIG_MAPPING, AutoConfig

    with named_errors(reference, "its configuration is not valid"):
        if reference.folder is None and reference.name in CONFIG_MAPPING:
            make = functools.partial(AutoConfig.for_model, reference.name)
        else:
            make = functools.partial(_from_files, reference)
        plain = make()
        taken = inspect.signature(type(plain).__init__).parameters
        unknown = [key for key in keys if not hasattr(plain, key) and key not in taken]
        # Some are read by the model alone, with another value where they are not there.
        module = sys.modules[_class(reference, plain).__module__]
        source = inspect.getsource(module) if unknown else ""
        strange = [key for key in unknown if f'getattr(config, "{key}"' not in source]
        if strange:
            close = difflib.get_close_matches(strange[0], plain.to_dict(), n=1)
            remedy = f"did you mean {close[0]!r}?" if close else "remove it"
            raise ModelError(
                f"{reference.text}: {type(plain).__name__} has no key {strange[0]!r}; {remedy}"
            )
        return make(**keys)


def _from_files(reference: Reference, **keys: object):
    """The configuration of a folder, or of a repository in Hugging Face's cache."""
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(
            reference.name, local_files_only=True, trust_remote_code=False, **keys
        )
    except OSError as error:
        if reference.folder:
            raise
        raise ModelError(
            f"{reference.text}: there is no folder {reference.name} with a config.json, no"
            " architecture of that name in the installed transformers, and no such repository in"
            " Hugging Face's cache; nothing is downloaded: give a folder, or an architecture with"
            " its keys, as hf: qwen3"
        ) from error


def _class(reference: Reference, config) -> Any:
    """The class that the configuration names, else the architecture's language model."""
    import transformers

    mapping = transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    for name in getattr(config, "architectures", None) or []:
        if hasattr(transformers, name):
            return getattr(transformers, name)
    if type(config) not in mapping:
        raise ModelError(
            f"{reference.text}: transformers has no causal language model of {config.model_type};"
            " build it in a file of your own, with make_batch and loss"
        )
    # of some architectures a pair of classes, the usual one first
    found = mapping[type(config)]
    return found[0] if isinstance(found, tuple) else found
