"""Models and steps of one's own: from the configuration's `models` and `steps` to specs, and what
makes their cells stale.

A spec names what is built by a text, `FILE:FUNCTION` or `hf:NAME`, and has no shape. Of a cell that
compares steps each variant names its own. What builds them is loaded by name elsewhere, so that no
other cell depends on it.
"""

import functools
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from stepscope.model.own.reference import ModelError, parse

from . import ConfigError
from .code_digest import Sources

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
    try:
        text = json.dumps(keys, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{error}, as keys of build() have to be; write it as text, or as numbers"
        ) from None
    return {kind: reference} | ({f"{kind}_keys": text} if keys else {})


def variant_of(given: dict) -> dict:
    """A variant of a comparison of steps of one's own as a spec has it.

    given: `name`, `step`, the name that it comes `after`, and `step_keys`, a mapping or its JSON.
    Raises ValueError or ModelError, in one line, for what is none.
    """
    step, keys = given.get("step"), given.get("step_keys", {})
    if isinstance(keys, str):
        keys = json.loads(keys)
    known = {"name", "after", "step", "step_keys"}
    if given.keys() - known or not isinstance(step, str) or not isinstance(keys, dict):
        raise ValueError(
            f"{given['name']} is no step of one's own, which has a name, step: FILE.py:FUNCTION and"
            " step_keys, a mapping"
        )
    parse(step, "step")
    rest = {key: value for key, value in given.items() if key != "step_keys"}
    return rest | part_of_spec(step, keys, "step")


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
            _made_of(part[kind])
        except (ModelError, OSError) as error:
            key = f"config key {kind}s.{part.get('name', name)}"
            raise ConfigError(f"{key}: {error}") from None


def with_files(code: str, spec: dict) -> str:
    """The digest of a cell's code and of the files that its own model or steps are made of;
    hexadecimal, 16 characters. The code's alone where there are none."""
    digests = [_made_of(reference)[0] for reference in references(spec)]
    text = "\0".join([code, *digests])
    return hashlib.sha256(text.encode()).hexdigest()[:16] if digests else code


def packages_of(spec: dict) -> set[str]:
    """Packages whose versions count for a cell: what the files of its own model or steps import
    beside torch."""
    found = set().union(*(_made_of(reference)[1] for reference in references(spec)))
    return found - {"torch", "triton", "stepscope"} - sys.stdlib_module_names


@functools.cache
def _made_of(reference: str) -> tuple[str, set[str]]:
    """What a change of makes the model or step another one: a digest of its own file and what that
    imports, at any depth, from the folder that it is in, and the packages that they import.

    Raises ModelError where the file is not there.
    """
    first, *others = parse(reference).files()
    sources = Sources(first.parent, package=None)
    digests = [sources.digest(first.name)]
    digests += [hashlib.sha256(each.read_bytes()).hexdigest() for each in others]
    return "\0".join(digests), sources.others(first.name)
