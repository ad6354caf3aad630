"""YAML files that people write: what cannot be read, or would be read as something else, is said
with its line."""

import re
from pathlib import Path

MOST_VALUES = 100_000  # in a file, those that its aliases repeat counted each time
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")


def read_yaml(path: Path) -> dict:
    """A YAML file of ours, read by the parser in C where there is one: it is five times as fast."""
    import yaml

    return yaml.load(path.read_text(encoding="utf-8"), Loader=_loader())


def unreadable(path: Path) -> str | None:
    """None if the file is YAML with keys at its top level, each once; else what is wrong with it, a
    line each.

    Asked before Snakemake reads it, which would answer with a traceback.
    """
    import yaml

    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=_loader())
        if root and (complaints := _complaints(root)):
            return "\n".join(f"{path}, {said}" for said in complaints)
        if not isinstance(read_yaml(path), dict):
            return f"{path} holds no keys at its top level; write lines like `device: cpu`"
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
    return None


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
            names: list[str] = []
            for key, value in node.value:
                if str(key.value) in names:
                    twice = f"line {key.start_mark.line + 1}: key {str(key.value)!r}"
                    said.append(f"{twice} is there twice; remove one")
                names.append(str(key.value))
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
