"""YAML files that people write: what cannot be read, or would be read as something else, is said
with its line."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

MOST_BYTES = 10_000_000
MOST_LEVELS = 100
MOST_VALUES = 100_000  # in a file, those that its aliases repeat counted each time
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")


def read_yaml(path: Path) -> dict:
    """A YAML file of ours, read by the parser in C where there is one: it is five times as fast."""
    import yaml

    return yaml.load(path.read_text(encoding="utf-8"), Loader=_loader())


def unreadable_of(words: Sequence[str]) -> str | None:
    """What unreadable() says of the first file of --configfile in a command line of Snakemake that
    it complains about; None where there is none.

    A profile asks this (profiles/default/config.yaml): Snakemake reads these files before any code
    of the workflow, so that one could hang it, or run code of its own by way of YTE.
    """
    flags = argparse.ArgumentParser(add_help=False)
    flags.add_argument("--configfile", "--configfiles", nargs="+", action="extend", default=[])
    flags.add_argument("--config", nargs="*")  # else taken for a short form of the other
    given, _ = flags.parse_known_args(words)
    for name in given.configfile:
        if complaint := unreadable(Path(name)):
            return complaint
    return None


def unreadable(path: Path) -> str | None:
    """None if the file is YAML with keys at its top level, each once; else what is wrong with it, a
    line each.

    Asked before Snakemake reads it, which would answer with a traceback.
    """
    import yaml

    if path.exists() and not (path.is_file() or path.is_dir()):
        return f"{path} is a pipe or a device, which is read but once; give a file"
    try:
        if path.stat().st_size > MOST_BYTES:
            return f"{path} has more than {MOST_BYTES:,} bytes; no configuration needs as many"
        text = path.read_text(encoding="utf-8")
        _require_few_levels(text)  # composing goes into each of them, until the stack is full
        root = yaml.compose(text, Loader=_loader())
        if root and (complaints := _complaints(root)):
            return "\n".join(f"{path}, {said}" for said in complaints)
        content = read_yaml(path)
        if not isinstance(content, dict):
            return f"{path} holds no keys at its top level; write lines like `device: cpu`"
        if "__use_yte__" in content:
            return f"{path} asks for YTE, which would run what it holds; write values instead"
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
    except (yaml.YAMLError, ValueError) as error:
        return f"{path} is not usable YAML: {str(error).splitlines()[0]}; correct it"
    return None


def _require_few_levels(text: str) -> None:
    """Raise ValueError where mappings and lists are too deep inside each other."""
    import yaml

    level = 0
    for event in yaml.parse(text, Loader=_loader()):
        level += isinstance(event, yaml.CollectionStartEvent)
        level -= isinstance(event, yaml.CollectionEndEvent)
        if level > MOST_LEVELS:
            raise ValueError(f"more than {MOST_LEVELS} levels inside each other")


def _loader() -> type:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _complaints(root) -> list[str]:
    """A line for each key that is there twice and each number that is not read as it looks, below a
    node of PyYAML.

    Raises ValueError for a node inside itself, or too many values.
    """
    said: list[str] = []
    counts: dict[int, int] = {}  # node → how many values it stands for, its aliases laid out

    def count(node) -> int:
        line = f"line {node.start_mark.line + 1}"
        if id(node) in counts:
            if not counts[id(node)]:
                raise ValueError(f"what begins in {line} holds itself")
            return counts[id(node)]
        counts[id(node)] = 0  # until all that is inside has been counted
        inside = []
        if node.id == "mapping":
            names: set[str] = set()
            for key, value in node.value:
                name = str(key.value)
                if name in names:
                    where = f"line {key.start_mark.line + 1}"
                    said.append(f"{where}: key {name!r} is there twice; remove one")
                names.add(name)
                inside += [key, value]
        elif node.id == "sequence":
            inside = node.value
        elif node.tag.endswith(":int") and not _DECIMAL.fullmatch(node.value):
            said.append(f"{line}: {node.value} is not read as it looks; write it in decimal")
        counts[id(node)] = 1 + sum(map(count, inside))
        if counts[id(node)] > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES:,} values, what aliases repeat counted too")
        return counts[id(node)]

    count(root)
    return said
