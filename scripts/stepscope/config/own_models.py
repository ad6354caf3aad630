"""Models and steps of one's own: from the configuration's `models` and `steps` to specs, and what
makes their cells stale.

A spec names what is built by a text, `FILE:FUNCTION` or `hf:NAME`, and has no shape. Of a cell that
compares steps each variant names its own. What builds them is loaded by name elsewhere, so that no
other cell depends on it.
"""

import ast
import contextlib
import functools
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stepscope.config import ConfigError
from stepscope.config.code_digest import (
    Read,
    imported,
    module_file,
    reached,
    source_digest,
)
from stepscope.machine.identity import PACKAGE
from stepscope.model.own.reference import ModelError, parse

_SCIENTIFIC = re.compile(r"[-+]?(\d{1,15}\.?\d{0,15}|\.\d{1,15})[eE][-+]?\d{1,4}")
KINDS = ("model", "step")  # keys of a spec
USUAL_CONTEXT = 128  # of a step
GIVEN = ("context", "batch")  # of a step's entry: a cell's own


def specs(config: dict) -> dict[str, dict]:
    """Name → parts of a spec of each of the configuration's own models.

    Raises ConfigError for one that has a size's name, that says not what to build, or whose keys
    cannot be handed on.
    """
    return {name: _spec(name, entry, config["sizes"]) for name, entry in config["models"].items()}


def steps(config: dict) -> dict[str, dict]:
    """The same of each step of one's own, with its context and its batch."""
    taken = [*config["sizes"], *config["models"]]
    usual = {"context": USUAL_CONTEXT, "batch": config["model"]["batch"]}
    return {
        name: _spec(name, entry, taken, "step") | {key: entry.get(key, usual[key]) for key in GIVEN}
        for name, entry in config["steps"].items()
    }


def _spec(name: str, entry: dict, taken: Iterable[str], kind: str = "model") -> dict:
    where = f"config key {kind}s.{name}"
    if name in taken:
        raise ConfigError(f"{where}: a size or a model has that name, too; rename one of them")
    if ("build" in entry) == ("hf" in entry):
        raise ConfigError(f"{where}: give either build: FILE:FUNCTION or hf: NAME")
    known = ("build", "hf", *(GIVEN if kind == "step" else ()))
    keys = {key: value for key, value in entry.items() if key not in known}
    reference = entry["build"] if "build" in entry else f"hf:{entry['hf']}"
    try:
        parse(reference, kind)
        return part_of_spec(reference, read_numbers(keys), kind)
    except (ModelError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None


def read_numbers(value: Any) -> Any:
    """A key's value with numbers in the place of text that spells them as 3e-4, which YAML takes
    for text: it asks for 3.0e-4."""
    if isinstance(value, dict):
        return {key: read_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [read_numbers(each) for each in value]
    if not isinstance(value, str) or not _SCIENTIFIC.fullmatch(value):
        return value
    number = float(value)
    return int(number) if number.is_integer() else number  # as in all of the configuration


def part_of_spec(reference: str, keys: dict, kind: str = "model") -> dict:
    """What stands in a spec instead of a shape: `model` or `step`, and as JSON in one spelling
    `model_keys` or `step_keys`, if there are any.

    Raises ValueError, with one line, for keys that build() cannot be given.
    """
    for key in ("device", "seed", *GIVEN) if kind == "step" else GIVEN[:1]:
        if key in keys:
            raise ValueError(f"{key} is a cell's own and given to build() by itself; remove it")
    for key, value in keys.items():
        if not key.isidentifier():
            raise ValueError(f"{key!r} cannot be the name of an argument of build(); rename it")
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError(
                f"{key}: {value!r} is no number, text, list or mapping; write it as text"
            ) from None
    text = json.dumps(keys, sort_keys=True, separators=(",", ":"))
    return {kind: reference} | ({f"{kind}_keys": text} if keys else {})


def variant_of(given: dict) -> dict:
    """A variant of a comparison of steps of one's own as a spec has it.

    given: `name`, `step`, the name that it comes `after`, and `step_keys`, a mapping or its JSON.
    Raises ValueError or ModelError, in one line, for what is none.
    """
    name = given["name"]
    own = ("name", "after", "step", "step_keys")
    for key in given:
        if key not in own:
            raise ValueError(f"{name} has no {key}; a step of one's own has {', '.join(own)}")
    if not isinstance(given.get("step"), str):
        raise ValueError(f"{name} names no step; give each a step, FILE.py:FUNCTION")
    parse(given["step"], "step")
    keys = given.get("step_keys", {})
    with contextlib.suppress(ValueError, RecursionError):
        keys = json.loads(keys) if isinstance(keys, str) else keys
    if not isinstance(keys, dict):
        raise ValueError(f"{name}: step_keys {keys!r} is no mapping, such as {{'layers': 12}}")
    rest = {key: value for key, value in given.items() if key != "step_keys"}
    return rest | part_of_spec(given["step"], keys, "step")


def keys_of(spec: dict) -> dict:
    """What else build() is given, by a spec."""
    return json.loads(spec.get("model_keys") or spec.get("step_keys") or "{}")


def references(spec: dict) -> list[str]:
    """What is one's own in a cell: its model or its step, or the steps that it compares."""
    return [part[kind] for part, kind in _own_parts(spec)]


def _own_parts(spec: dict) -> Iterator[tuple[dict, str]]:
    """(it or a variant of it, which of KINDS) for each that is one's own in a spec."""
    for part in (spec, *spec.get("variants", [])):
        for kind in filter(part.__contains__, KINDS):
            yield part, kind


def require(name: str, spec: dict) -> None:
    """Raise ConfigError, with one line that names the key, if a file of a cell's own model or step
    is not there, or the repository of an architecture is not in Hugging Face's cache."""
    for part, kind in _own_parts(spec):
        try:
            _files(part[kind])
        except (ModelError, OSError) as error:
            key = f"config key {kind}s.{part.get('name', name)}"
            raise ConfigError(f"{key}: {error}") from None


def with_files(code: str, spec: dict) -> str:
    """The digest of a cell's code and of the files that its own model or steps are made of;
    hexadecimal, 16 characters. The code's alone where there are none."""
    digests = map(_digest, references(spec))
    return functools.reduce(_digest_of_both, digests, code)


def _digest_of_both(code: str, files: str) -> str:
    return hashlib.sha256(f"{code}\0{files}".encode()).hexdigest()[:16]


def packages_of(spec: dict) -> tuple[str, ...]:
    """Packages whose versions count for a cell, as identity() takes them: what the files of its own
    model or steps import beside torch."""
    found = [name for reference in references(spec) for name in _packages_of(reference)]
    return tuple(dict.fromkeys(found))


@functools.cache
def _packages_of(reference: str) -> tuple[str, ...]:
    names: set[str] = set()
    own: set[str] = set()
    for path, (_, imports) in _files(reference).items():
        own.add(path.parent.name if path.name == "__init__.py" else path.stem)
        names |= {name for name in imports if "." not in name}
    others = names - {"torch", "triton", "stepscope"} - own - sys.stdlib_module_names
    return tuple(PACKAGE + name for name in sorted(others))


@functools.cache
def _files(reference: str) -> dict[Path, Read]:
    """What a change of makes the model or step another one, sorted: its own file and what that
    imports, at any depth, from the folder that it is in.

    Raises ModelError where the file is not there.
    """
    first, *others = parse(reference).files()
    folder = first.parent
    read = functools.cache(functools.partial(_read, folder))
    found = reached(read(first)[1], functools.partial(module_file, folder=folder), read)
    return {path: read(path) for path in sorted({first, *others, *found.values()})}


@functools.cache
def _digest(reference: str) -> str:
    """Of the files, each under its name: where the folder stands does not count."""
    total = hashlib.sha256()
    for path, (digest, _) in _files(reference).items():
        total.update(f"{path.name}\0{digest}\0".encode())
    return total.hexdigest()


def _read(folder: Path, path: Path) -> Read:
    """Of a file of Python below a folder. Of any other its bytes count, and it imports nothing; nor
    does what cannot be parsed, as its cell will say."""
    content = path.read_bytes()
    if path.suffix == ".py":
        with contextlib.suppress(SyntaxError, ValueError):
            names = imported(ast.parse(content), path.relative_to(folder).parent.parts)
            return source_digest(content), names
    return hashlib.sha256(content).hexdigest(), ()
