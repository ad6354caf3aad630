"""Models of one's own: from the configuration's `models` to specs, and what makes their cells
stale.

A spec names what is built by a text, `FILE:FUNCTION` or `hf:NAME`, and has no shape. The package
that builds them, stepscope.model.own, is loaded by name, so that no other cell depends on it.
"""

import ast
import functools
import hashlib
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

from stepscope.config import ConfigError
from stepscope.config.code_digest import imported, source_digest
from stepscope.machine.identity import PACKAGE

HUGGING_FACE = "transformers"  # which every model of hf: is made of


def package() -> ModuleType:
    """The package that builds models of one's own; it imports torch only when one is built."""
    return importlib.import_module("stepscope.model.own")


def specs(config: dict) -> dict[str, dict]:
    """Name → parts of a spec of each of the configuration's own models.

    Raises ConfigError for one that has a size's name, that says not what to build, or whose keys
    cannot be handed on.
    """
    return {name: _spec(name, entry, config["sizes"]) for name, entry in config["models"].items()}


def _spec(name: str, entry: dict, sizes: dict) -> dict:
    where = f"config key models.{name}"
    if name in sizes:
        raise ConfigError(f"{where}: there is a size of that name, too; rename one of them")
    if ("build" in entry) == ("hf" in entry):
        raise ConfigError(f"{where}: give either build: FILE:FUNCTION or hf: NAME")
    keys = {key: value for key, value in entry.items() if key not in ("build", "hf")}
    reference = entry["build"] if "build" in entry else f"hf:{entry['hf']}"
    try:
        package().parse(reference)
        return part_of_spec(reference, keys)
    except (package().ModelError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None


def part_of_spec(reference: str, keys: dict) -> dict:
    """What stands in a spec instead of a shape: `model`, and as JSON in one spelling `model_keys`,
    if there are any.

    Raises ValueError, with one line, for keys that build() cannot be given.
    """
    if "context" in keys:
        raise ValueError("context is a cell's own and given to build() by itself; remove the key")
    for key, value in keys.items():
        if not key.isidentifier():
            raise ValueError(f"{key!r} cannot be the name of an argument of build(); rename it")
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError(
                f"{key}: {value!r} is no number, text, list or mapping; write it as text"
            ) from None
    text = {"model_keys": json.dumps(keys, sort_keys=True, separators=(",", ":"))} if keys else {}
    return {"model": reference} | text


def keys_of(spec: dict) -> dict:
    """What else build() is given, by a spec."""
    return json.loads(spec.get("model_keys", "{}"))


def require(name: str, reference: str) -> None:
    """Raise ConfigError, with one line that names the key, if a model's file is not there, or the
    repository of an architecture is not in Hugging Face's cache."""
    try:
        _files(reference)
    except (package().ModelError, OSError) as error:
        raise ConfigError(f"config key models.{name}: {error}") from None


def with_files(code: str, reference: str) -> str:
    """The digest of a cell's code and of the files that its model is made of; hexadecimal, 16
    characters."""
    return hashlib.sha256(f"{code}\0{_digest(reference)}".encode()).hexdigest()[:16]


@functools.cache
def packages_of(reference: str) -> tuple[str, ...]:
    """Packages whose versions count for a model, as identity() takes them: what its files import
    beside torch."""
    names = {HUGGING_FACE} if reference.startswith("hf:") else set()
    own: set[str] = set()
    for path in _files(reference):
        own.add(path.parent.name if path.name == "__init__.py" else path.stem)
        if tree := _tree(path):
            names |= {name for name in imported(tree) if "." not in name}
    others = names - {"torch", "triton", "stepscope"} - own - sys.stdlib_module_names
    return tuple(PACKAGE + name for name in sorted(others))


@functools.cache
def _files(reference: str) -> list[Path]:
    """What files_of() finds; the model's file alone where that is no Python, which its cells say
    when they build it.

    Raises ModelError where the file is not there.
    """
    try:
        return package().files_of(reference)
    except package().ModelError:
        file = package().parse(reference).file
        if file and file.is_file():
            return [file]
        raise


@functools.cache
def _digest(reference: str) -> str:
    """Of the files, each under its name: where the folder stands does not count."""
    total = hashlib.sha256()
    for path in sorted(_files(reference)):
        total.update(f"{path.name}\0{_content(path)}\0".encode())
    return total.hexdigest()


def _content(path: Path) -> str:
    """A file of Python as parsed code, without comments and docstrings; any other as its bytes."""
    content = path.read_bytes()
    return source_digest(content) if _tree(path) else hashlib.sha256(content).hexdigest()


def _tree(path: Path) -> ast.Module | None:
    """A file of Python as parsed code; None of any other, and of one that cannot be parsed, as its
    cell will say."""
    try:
        return ast.parse(path.read_bytes()) if path.suffix == ".py" else None
    except (SyntaxError, ValueError):
        return None
