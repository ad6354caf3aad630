"""The configuration: read, checked against the schema, each error one line that names the key."""

import difflib
import functools
import json
import math
import operator
import re
from pathlib import Path

from stepscope.config import ConfigError
from stepscope.config.studies import BY_NAME
from stepscope.model import chosen
from stepscope.model.formats import FORMATS

MOST_BITS = 1000  # of an integer; Python refuses to print one of some thousand digits
MOST_SHOWN = 200  # characters of what jsonschema says, which holds the value
# Text that is read as what it spells, where a number or truth value belongs.
_AS_WRITTEN = re.compile(r"true|false|-?\d{1,15}(\.\d{1,15})?")


def merged(base: dict, over: dict) -> dict:
    """`base` with `over` laid on top: mappings key by key, everything else replaced. Neither is
    changed."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def read_yaml(path: Path) -> dict:
    """A YAML file of ours, read by the parser in C where there is one: it is five times as fast."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)


def unreadable(path: Path) -> str | None:
    """None if the file is YAML with keys at its top level; else one line that says what is wrong
    and where.

    Asked before Snakemake reads it, which would answer with a traceback.
    """
    import yaml

    try:
        content = read_yaml(path)
        json.dumps(content, default=str, skipkeys=True)  # refuses what holds itself
    except FileNotFoundError:
        return f"{path}: there is no such file; restore it, or name another with --configfile"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}; put a file in its place"
    except UnicodeDecodeError as error:
        return f"{path} is not text in UTF-8 (byte {error.start}); save it as UTF-8"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        return f"{path}{where}: {error.problem or error.context}; correct it"
    except RecursionError:
        return f"{path}: too many levels inside each other; no key needs as many"
    except (yaml.YAMLError, ValueError) as error:
        return f"{path} is not usable YAML: {str(error).splitlines()[0]}; correct it"
    if not isinstance(content, dict):
        return f"{path} holds no keys at its top level; write lines like `device: cpu`"
    return None


def validated(config: dict, schema_path: Path) -> dict:
    """`config` with the schema's defaults filled in, and each number written in one way: 1.0 as 1.

    Raises ConfigError for the most telling thing that the schema forbids, a key that is no text, a
    number that is not finite, or a least number above the most.
    """
    import jsonschema
    from snakemake.utils import validate

    checker = jsonschema.Draft202012Validator(_schema(schema_path))
    config = _plain_mapping(config)
    _read_text(config, checker)
    config = _plain_mapping(config)
    if error := jsonschema.exceptions.best_match(checker.iter_errors(config)):
        raise ConfigError(_explained(error))
    _require_known_limits(config)
    validate(config, str(schema_path))
    _require_least_below_most(config)
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


def _require_known_limits(config: dict) -> None:
    """Of the limits: that each is for studies, and for sizes or models, that there are."""
    known = {
        "study": list(BY_NAME),
        "size": [*config["sizes"], *config.get("models", {})],
    }
    for place, line in enumerate(config.get("limits", [])):
        for key, names in known.items():
            for name in line.get(key, []):
                if name not in names:
                    raise ConfigError(
                        f"config key limits.{place}.{key}: no {key} {name!r}; choose from"
                        f" {', '.join(names)}"
                    )


def _require_least_below_most(value: object, where: str = "") -> None:
    """What a schema cannot say of `min` and `max` where they stand beside each other in a
    mapping."""
    if isinstance(value, dict):
        if "min" in value and "max" in value and value["min"] > value["max"]:
            raise ConfigError(
                f"config key {where}: min {value['min']} is more than max {value['max']}; raise max"
            )
        for key, item in value.items():
            _require_least_below_most(item, f"{where}.{key}".lstrip("."))


def _explained(error) -> str:
    """One line for a jsonschema ValidationError: the key, jsonschema's words with the value, and
    what the key means."""
    key = ".".join(map(str, error.absolute_path)) or "(top level)"
    said = (
        error.message
        if len(error.message) <= MOST_SHOWN
        else f"{error.message[:80]} ... {error.message[-80:]}"
    )
    hint = _meaning(error)
    if error.validator == "additionalProperties":
        known, patterns = (
            list(error.schema.get("properties", {})),
            error.schema.get("patternProperties", {}),
        )
        unknown = next(
            name
            for name in error.instance
            if name not in known and not any(re.search(each, name) for each in patterns)
        )
        close = difflib.get_close_matches(unknown, known, n=1)
        said = f"unknown key {unknown[:MOST_SHOWN]!r}"
        if known:
            hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
    line = f"config key {key}: {said}; {hint}" if hint else f"config key {key}: {said}"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in line)


def _meaning(error) -> str:
    """The description of the key, or of the list or mapping that it stands in."""
    while error and "description" not in error.schema:
        error = error.parent
    return error.schema["description"].rstrip(".") if error else ""
