"""The configuration: presets laid over it, checked against the schema, each error one line that names the key."""

import copy
import difflib
import itertools
import json
import math
import re
from pathlib import Path

from stepscope.config.config_file import unreadable

MOST_BITS = 1000  # of an integer; Python refuses to print one of some thousand digits
_TYPES = {"boolean": (bool,), "integer": (int,), "number": (int, float)}  # a schema's names → Python's
_AS_WRITTEN = re.compile(r"true|false|-?\d{1,15}(\.\d{1,15})?")  # what is read where text stands in their place


class ConfigError(Exception):
    """The configuration is wrong; the message is one line that names the key, the value and what to do."""


def merged(base: dict, over: dict) -> dict:
    """`base` with `over` laid on top: mappings key by key, everything else replaced. Neither is changed."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def read_yaml(path: Path) -> dict:
    """A YAML file of ours, read by the parser in C where there is one: it is five times as fast."""
    import yaml

    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def with_preset(config: dict, given: dict, folder: Path) -> dict:
    """`config` with its preset's file from `folder` laid over it, and what the user gave (`given`) over that.

    Raises ConfigError for a preset that has no file, or one that cannot be read.
    """
    name = config.get("preset", "default")
    return config if name == "default" else merged(merged(config, read_preset(name, folder)), given)


def read_preset(name: str, folder: Path, within: tuple[str, ...] = ()) -> dict:
    """A preset's file, with the presets that it names under `presets` put together before it.

    within: the presets that this one is a part of. Raises ConfigError for one that has no file, or holds itself.
    """
    presets = sorted(path.stem for path in folder.glob("*.yaml"))
    where = f"rules/presets/{within[-1]}.yaml, key presets" if within else "config key preset"
    if name not in presets:
        raise ConfigError(f"{where}: there is no preset {name!r}; choose from default, {', '.join(presets)}")
    if name in within:
        raise ConfigError(f"{where}: {name!r} holds itself; remove it")
    if complaint := unreadable(folder / f"{name}.yaml"):
        raise ConfigError(complaint)
    own = read_yaml(folder / f"{name}.yaml")
    whole: dict = {}
    for part in own.pop("presets", []):
        whole = together(whole, read_preset(part, folder, (*within, name)))
    return together(whole, own)


def together(first: dict, second: dict) -> dict:
    """Two presets as one: mappings key by key, lists one after the other without what the first has already, the
    entries of grids point by point; of single values the second's."""
    result = dict(first)
    for key, value in second.items():
        old = result.get(key)
        if isinstance(value, dict):
            result[key] = together(old if isinstance(old, dict) else {}, value)
        elif isinstance(value, list):
            found = [*(old if isinstance(old, list) else []), *(one for item in value for one in _single(item))]
            result[key] = [item for at, item in enumerate(found) if item not in found[:at]]
        else:
            result[key] = value
    return result


def _single(item: object) -> list:
    """The points of a grid's entry, each as an entry; a list of lengths is one point. Anything else as it is."""
    if not isinstance(item, dict):
        return [item]
    axes = {key: value for key, value in item.items() if isinstance(value, list) and key != "lengths"}
    products = itertools.product(*axes.values())
    return [item | {key: [value] for key, value in zip(axes, values, strict=True)} for values in products]


def checked(config: dict, schema: dict) -> dict:
    """`config` with the schema's defaults filled in, and each number written in one way: 1.0 as 1.

    Raises ConfigError for the first thing that the schema forbids, a number that is not finite, or a least number above
    the most.
    """
    import jsonschema

    _require_text_keys(config, "")
    config = _in_one_spelling(_typed(_in_one_spelling(config, ""), schema), "")
    filled = _with_defaults(config, schema, schema)
    problems = sorted(jsonschema.Draft202012Validator(schema).iter_errors(filled), key=lambda e: list(map(str, e.path)))
    if problems:
        raise ConfigError(_explained(problems[0]))
    _require_least_below_most(filled, "")
    return filled


def _require_least_below_most(value: object, where: str) -> None:
    """What a schema cannot say of `min` and `max`, wherever they stand beside each other."""
    if not isinstance(value, dict):
        return
    if "min" in value and "max" in value and value["min"] > value["max"]:
        raise ConfigError(f"config key {where}: min {value['min']} is more than max {value['max']}; raise max")
    for key, item in value.items():
        _require_least_below_most(item, f"{where}.{key}".lstrip("."))


def _typed(config: dict, schema: dict) -> dict:
    """`config` with text as the number or truth value that the schema asks for there and that YAML reads in it.

    Snakemake leaves what stands inside a mapping or list of `--config` as text, and YAML's true everywhere.
    """
    import jsonschema
    import yaml

    config = copy.deepcopy(config)
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors(config))
    while errors:
        error = errors.pop()
        errors += error.context
        if error.validator == "type" and isinstance(error.instance, str) and _AS_WRITTEN.fullmatch(error.instance):
            value, types = yaml.safe_load(error.instance), error.validator_value
            if any(type(value) in _TYPES.get(name, ()) for name in (types if isinstance(types, list) else [types])):
                _put(config, list(error.absolute_path), value)
    return config


def _put(whole: object, path: list, value: object) -> None:
    for key in path[:-1]:
        whole = whole[key]
    whole[path[-1]] = value


def _require_text_keys(value: object, where: str) -> None:
    """YAML reads a bare 7 or yes as a number or a truth value; as a key that is never meant."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ConfigError(
                    f"config key {where or '(top level)'}: {key} is not a usable name; "
                    "use letters, or write it in quotes"
                )
    for key, item in _members(value):
        _require_text_keys(item, f"{where}.{key}".lstrip("."))


def _in_one_spelling(value: object, where: str) -> object:
    """The value with whole numbers as integers, so that 1.0 makes nothing stale that was measured with 1.

    Raises ConfigError for a number that is none, or not finite: to a schema these are larger and smaller than nothing.
    """
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ConfigError(f"config key {where}: a number of hundreds of digits is too large; use a smaller one")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConfigError(f"config key {where}: {value} is not a finite number; give one")
        return int(value) if value.is_integer() else value
    members = [(key, _in_one_spelling(item, f"{where}.{key}".lstrip("."))) for key, item in _members(value)]
    if isinstance(value, dict):
        return dict(members)
    return [item for _, item in members] if isinstance(value, list) else value


def _members(value: object) -> list[tuple[object, object]]:
    """(key or number, member) of a mapping or a list."""
    return list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())


def _with_defaults(value: object, schema: dict, root: dict) -> object:
    """The value with the defaults of missing keys, at every depth of mappings."""
    schema = _resolved(schema, root)
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    result = {key: _with_defaults(item, properties.get(key, {}), root) for key, item in value.items()}
    for key, part in properties.items():
        part = _resolved(part, root)
        if key not in result and "default" in part:
            result[key] = _with_defaults(json.loads(json.dumps(part["default"])), part, root)
    return result


def _resolved(schema: dict, root: dict) -> dict:
    """The schema that a `$ref` of the form #/$defs/NAME points to, with what stands beside the `$ref`."""
    if "$ref" not in schema:
        return schema
    return {**root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], **schema}


def _explained(error) -> str:
    """One line for a jsonschema ValidationError."""
    key = ".".join(map(str, error.absolute_path)) or "(top level)"
    shown = json.dumps(error.instance, default=str)  # YAML has dates, too
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    if error.validator == "additionalProperties":
        known, patterns = list(error.schema.get("properties", {})), list(error.schema.get("patternProperties", {}))
        unknown = [
            name
            for name in error.instance
            if name not in known and not any(re.search(pattern, name) for pattern in patterns)
        ]
        if patterns and not known:
            shown = repr(unknown[0]) if len(unknown[0]) <= 70 else f"{unknown[0][:60]!r}..."
            return f"config key {key}: {shown} is not a usable name; use at most 64 letters, digits, '.', '_' and '-'"
        close = difflib.get_close_matches(str(unknown[0]), known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; known keys: {', '.join(known)}"
        where = f"config key {key}" if error.absolute_path else "config"
        return f"{where}: unknown key {unknown[0]!r}{hint}"
    if error.validator == "propertyNames" or (error.validator == "pattern" and error.parent is not None):
        return f"config key {key}: {shown} is not a usable name; use letters, digits, '.', '_' and '-'"
    if error.validator == "enum":
        return f"config key {key}: {shown} is not one of {', '.join(map(str, error.validator_value))}"
    if error.validator in ("minimum", "exclusiveMinimum"):
        least = "at least" if error.validator == "minimum" else "more than"
        return f"config key {key}: {shown} is too small; use {least} {error.validator_value}"
    if error.validator == "maximum":
        return f"config key {key}: {shown} is too large; use at most {error.validator_value}"
    if error.validator == "maxLength":
        return f"config key {key}: {shown} is too long; use at most {error.validator_value} characters"
    if error.validator == "maxItems":
        return f"config key {key}: {len(error.instance)} values are too many; give at most {error.validator_value}"
    if error.validator == "minItems":
        return f"config key {key}: the list is empty; give at least {error.validator_value} entry"
    if error.validator == "minProperties":
        return f"config key {key}: nothing is given; give at least {error.validator_value} entry"
    if error.validator == "uniqueItems":
        return f"config key {key}: {shown} holds a value twice; remove one"
    if error.validator == "type":
        return f"config key {key}: {shown} is not of type {error.validator_value}"
    if error.validator == "oneOf":
        return f"config key {key}: {shown} does not fit. {error.schema.get('description', '')}".rstrip()
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"config key {key}: {missing[0]!r} is missing"
    return f"config key {key}: {error.message}"
