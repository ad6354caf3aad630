"""YAML files that people write: what cannot be read, or would be read as something else, is said
with its line."""

import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import yaml

MOST_BYTES = 1_000_000
MOST_LEVELS = 100
MOST_VALUES = 100_000  # in a file, those that its aliases repeat counted each time
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_LOADER = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)  # in C where there is one: five times as fast


def read_yaml(path: Path) -> dict:
    """A YAML file of ours."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)


def unreadable(path: Path) -> str | None:
    """None if the file is YAML with keys at its top level, each once; else what is wrong with it, a
    line each.

    Asked before Snakemake reads it, which would answer with a traceback.
    """
    if path.exists() and not path.is_file():  # a pipe or a device is read but once
        return f"{path} is no file; give one"
    try:
        if path.stat().st_size > MOST_BYTES:
            return f"{path} has more than {MOST_BYTES:,} bytes; no configuration needs as many"
        text = path.read_text(encoding="utf-8")
        _require_few_levels(text)
        root = yaml.compose(text, Loader=_LOADER)
        if root and (complaints := dict.fromkeys(_complaints(root))):
            return "\n".join(f"{path}, {said}" for said in complaints)
        content = read_yaml(path)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}; name another file, or restore it"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        return f"{path}{where}: {error.problem or error.context}; correct it"
    except (yaml.YAMLError, ValueError) as error:
        return f"{path} is not usable YAML: {str(error).splitlines()[0]}; correct it"
    if not isinstance(content, dict):
        return f"{path} holds no keys at its top level; write lines like `device: cpu`"
    if "__use_yte__" in content:
        return f"{path} asks for YTE, which would run what it holds; write values instead"
    return None


def _require_few_levels(text: str) -> None:
    """Raise ValueError where mappings and lists are too deep inside each other: composing goes into
    each of them, until the stack is full."""
    level = 0
    for event in yaml.parse(text, Loader=_LOADER):
        level += isinstance(event, yaml.CollectionStartEvent)
        level -= isinstance(event, yaml.CollectionEndEvent)
        if level > MOST_LEVELS:
            raise ValueError(f"more than {MOST_LEVELS} levels inside each other")


def _complaints(root) -> Iterator[str]:
    """A line for each key that is there twice and each number that is not read as it looks, from a
    node of PyYAML on.

    Raises ValueError for too many values, of which there is no end where a node is inside itself.
    """
    waiting = deque([root])
    for _ in range(MOST_VALUES):
        if not waiting:
            return
        node = waiting.popleft()
        if node.id == "sequence":
            waiting += node.value
        elif node.id == "mapping":
            names: set[str] = set()
            for key, value in node.value:
                name = str(key.value)
                if name in names:
                    where = f"line {key.start_mark.line + 1}"
                    yield f"{where}: key {name!r} is there twice; remove one"
                names.add(name)
                waiting += [key, value]
        elif node.tag.endswith(":int") and not _DECIMAL.fullmatch(node.value):
            line = node.start_mark.line + 1
            yield f"line {line}: {node.value} is not read as it looks; write it in decimal"
    raise ValueError(f"more than {MOST_VALUES:,} values, what aliases repeat counted too")
