"""The configuration: read, checked against the schema, each error one line that names the key."""

import difflib
import functools
import math
import operator
import re
from collections.abc import Iterator
from pathlib import Path

from stepscope.config import MOST_COMPLAINTS, Complaints, ConfigError
from stepscope.config.studies import BY_NAME
from stepscope.model import chosen
from stepscope.model.formats import FORMATS
from stepscope.yaml_files import read_yaml

MOST_BITS = 1000  # of an integer; Python refuses to print one of some thousand digits
# What the schema's pattern of names says.
NAMES = "use at most 64 letters, digits and . _ - (a to z, and no sign first)"
MOST_SHOWN = 200  # characters of what jsonschema says, which holds the value
# Text that is read as what it spells, where a number or truth value belongs.
_AS_WRITTEN = re.compile(r"true|false|-?\d{1,15}(\.\d{1,15})?")


def validated(config: dict, schema_path: Path) -> dict:
    """`config` with the schema's defaults filled in, and each number written in one way: 1.0 as 1.

    Raises ConfigError, with a line each, for what the schema forbids; else for a key that is no
    text, a number that is not finite, a least number above the most, or a limit of what is not
    there.
    """
    import jsonschema
    from snakemake.utils import validate

    checker = jsonschema.Draft202012Validator(_schema(schema_path))
    config = _plain_mapping(config)
    _read_text(config, checker)
    config = _plain_mapping(config)
    wrong = Complaints()
    for error in sorted(checker.iter_errors(config), key=lambda error: list(map(str, error.path))):
        for line in _explained(jsonschema.exceptions.best_match([error])):
            wrong.note(line)
    wrong.tell()
    for line in _unknown_limits(config):
        wrong.note(line)
    validate(config, str(schema_path))  # fills in the defaults
    for line in _least_above_most(config):
        wrong.note(line)
    wrong.tell()
    return config


@functools.cache
def _schema(path: Path) -> dict:
    """The schema; values of an option that are modules are those that its package holds."""
    schema = read_yaml(path)
    for option in chosen.PACKAGES:
        schema["$defs"][option]["enum"] = chosen.names(option)
    whole = [name for name, one in FORMATS.items() if not one.outside]
    schema["$defs"]["precision_of_attention"]["enum"] = whole
    return schema


def _plain_mapping(value: dict, where: str = "") -> dict:
    """A copy with whole numbers as integers, so that 1.0 makes nothing stale that was measured with
    1.

    Raises ConfigError for a key that YAML reads as a number or truth value, and for numbers without
    bounds.
    """
    for key in value:
        if not isinstance(key, str):
            at = where or "(top level)"
            raise ConfigError(
                f"config key {at}: {key} is not a usable name; use letters, or write it in quotes"
            )
    return {key: _plain(item, f"{where}.{key}".lstrip(".")) for key, item in value.items()}


def _plain(value: object, where: str) -> object:
    if isinstance(value, dict):
        return _plain_mapping(value, where)
    if isinstance(value, list):
        return [_plain(item, f"{where}.{place}") for place, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"config key {where}: {value} is not a finite number; give one")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ConfigError(
            f"config key {where}: a number of hundreds of digits is too large; use a smaller one"
        )
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_text(config: dict, checker) -> None:
    """Put the number or truth value that the schema asks for in the place of text that spells one.

    Snakemake leaves what stands inside a mapping or list of `--config` as text, and YAML's true
    everywhere.
    """
    import yaml

    errors = list(checker.iter_errors(config))
    while errors:
        error = errors.pop()
        errors += error.context
        if (
            error.validator == "type"
            and isinstance(error.instance, str)
            and _AS_WRITTEN.fullmatch(error.instance)
        ):
            value = yaml.safe_load(error.instance)
            if checker.evolve(schema={"type": error.validator_value}).is_valid(value):
                *way, last = error.absolute_path
                functools.reduce(operator.getitem, way, config)[last] = value


def _unknown_limits(config: dict) -> Iterator[str]:
    """A line for each study, size or model that a limit is for and that is not there."""
    sizes = config["sizes"] | config.get("models", {}) | config.get("steps", {})
    known = {"study": list(BY_NAME), "size": list(sizes)}
    for place, line in enumerate(config.get("limits", [])):
        for key, names in known.items():
            for name in line.get(key, []):
                if name not in names:
                    where = f"config key limits.{place}.{key}"
                    yield f"{where}: no {key} {name!r}; choose from {', '.join(names)}"


def _least_above_most(value: object, where: str = "") -> Iterator[str]:
    """What a schema cannot say of `min` and `max` where they stand beside each other in a
    mapping."""
    if isinstance(value, dict):
        if "min" in value and "max" in value and value["min"] > value["max"]:
            told = f"min {value['min']} is more than max {value['max']}"
            yield f"config key {where}: {told}; raise max"
        for key, item in value.items():
            yield from _least_above_most(item, f"{where}.{key}".lstrip("."))


def _explained(error) -> list[str]:
    """A line, or one for each unknown key, for a jsonschema ValidationError: the key, jsonschema's
    words with the value, and what the key means."""
    said = error.message
    meaning = _meaning(error)
    if len(said) > MOST_SHOWN:
        said = f"{said[:80]} ... {said[-80:]}"
    told = [(said, meaning)]
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        patterns = [*map(re.compile, error.schema.get("patternProperties", {}))]
        told = []
        for name in error.instance:
            if name not in known and not any(each.search(name) for each in patterns):
                # to look for one that is alike takes a while
                alike = known and len(told) < MOST_COMPLAINTS
                what = f"unknown key {name[:MOST_SHOWN]!r}"
                hint = _alike(name, known) if alike else meaning
                if not known and len(told) < MOST_COMPLAINTS:  # a name that the user chooses
                    what = f"{name[:MOST_SHOWN]!r} is not a usable name"
                    hint = NAMES
                told.append((what, hint))
    key = ".".join(map(str, error.absolute_path)) or "(top level)"
    lines = [f"config key {key}: {what}; {hint}".removesuffix("; ") for what, hint in told]
    return [_printable(line) for line in lines]


def _alike(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in line)


def _meaning(error) -> str:
    """The description of the key, or of the list or mapping that it stands in."""
    while error and "description" not in error.schema:
        error = error.parent
    return error.schema["description"].rstrip(".") if error else ""
