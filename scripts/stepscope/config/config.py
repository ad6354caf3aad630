"""The configuration: read, checked against the schema, each error one line that names the key."""

import contextlib
import functools
import json
import operator
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepscope.model import chosen
from stepscope.model.formats import FORMATS
from stepscope.yaml_files import read_yaml

from . import Complaints, ConfigError
from .studies import BY_NAME

MOST = 1e300  # no number of a configuration; Python refuses to print one of some thousand digits
MOST_SHOWN = 200  # characters of what jsonschema says, which holds the value


def validated(config: dict, schema_path: Path) -> dict:
    """`config` with the schema's defaults filled in, and each number written in one way: 1.0 as 1.

    Raises ConfigError, with a line each, for what the schema forbids; else for a key that is no
    text, or a number that is not finite.
    """
    import jsonschema
    from snakemake.utils import validate

    checker = jsonschema.Draft202012Validator(_schema(schema_path))
    config = _plain(config)
    _read_text(config, checker)
    wrong = Complaints()
    for error in sorted(checker.iter_errors(config), key=lambda error: list(map(str, error.path))):
        for line in _explained(jsonschema.exceptions.best_match([error])):
            wrong.note(line)
    wrong.tell()
    validate(config, str(schema_path))  # fills in the defaults
    return config


@functools.cache
def _schema(path: Path) -> dict:
    """The schema; values of an option that are modules are those that its package holds, and
    studies those of the table."""
    schema = read_yaml(path)
    for option in chosen.PACKAGES:
        schema["$defs"][option]["enum"] = chosen.names(option)
    whole = [name for name, one in FORMATS.items() if not one.outside]
    schema["$defs"]["precision_of_attention"]["enum"] = whole
    schema["$defs"]["study"]["enum"] = list(BY_NAME)
    return schema


def _plain(value: Any, where: str = "") -> Any:
    """A copy with whole numbers as integers, so that 1.0 makes nothing stale that was measured with
    1.

    Raises ConfigError for a key that YAML reads as a number or truth value, and for numbers without
    bounds.
    """
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ConfigError(
                    f"config key {where or '(top level)'}: {key} is not a usable name; use letters,"
                    " or write it in quotes"
                )
        return {key: _plain(item, f"{where}.{key}".lstrip(".")) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, f"{where}.{place}") for place, item in enumerate(value)]
    if isinstance(value, int | float) and not abs(value) < MOST:
        raise ConfigError(
            f"config key {where}: a number that is not finite or has hundreds of digits; use a"
            " smaller one"
        )
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_text(config: dict, checker) -> None:
    """Put the number or truth value that the schema asks for in the place of text that spells one.

    Snakemake leaves what stands inside a mapping or list of `--config` as text, and YAML's true
    everywhere.
    """
    errors = list(checker.iter_errors(config))
    while errors:
        error = errors.pop()
        errors += error.context
        if error.validator == "type" and isinstance(error.instance, str):
            *way, last = error.absolute_path
            with contextlib.suppress(ValueError, RecursionError):
                value = _plain(json.loads(error.instance), str(last))
                functools.reduce(operator.getitem, way, config)[last] = value


def _explained(error) -> Iterator[str]:
    """A line, or one for each unknown key, for a jsonschema ValidationError: the key, jsonschema's
    words with the value, and what the key means."""
    said = [error.message]
    hint = _meaning(error)
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        patterns = "|".join(error.schema.get("patternProperties", ["(?!)"]))
        if known:
            hint = f"known keys: {', '.join(known)}"
        names = [name for name in error.instance if name not in known]
        said = [f"{name!r} is not a usable name" for name in names if not re.search(patterns, name)]
    key = ".".join(map(str, error.absolute_path)) or "(top level)"
    for one in said:
        shown = one if len(one) <= MOST_SHOWN else f"{one[:80]} ... {one[-80:]}"
        yield f"config key {key}: {shown}; {hint}"


def _meaning(error) -> str:
    """The description of the key, or of the list or mapping that it stands in."""
    while error and "description" not in error.schema:
        error = error.parent
    return error.schema["description"].rstrip(".") if error else ""
