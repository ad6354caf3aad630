"""YAML files that people write: what cannot be read, or would be read as something else, is said
with its line."""

import re
from pathlib import Path

MOST_VALUES = 100_000  # in a file, those that its aliases repeat counted each time
_PLAIN = re.compile(r"[-+]?(0|[1-9][0-9]*)")


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
        reading = _Reading()
        reading.values_of(yaml.compose(path.read_text(encoding="utf-8"), Loader=_loader()))
        if reading.complaints:
            return "\n".join(f"{path}, {said}" for said in reading.complaints)
        is_mapping = isinstance(read_yaml(path), dict)
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
    if not is_mapping:
        return f"{path} holds no keys at its top level; write lines like `device: cpu`"
    return None


def _loader() -> type:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Reading:
    """Goes through the nodes of a file, each once, and notes what is wrong."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._values: dict[int, int] = {}  # node → how many values it stands for; 0 while inside

    def values_of(self, node) -> int:
        """How many values a node of PyYAML stands for, its aliases laid out. Raises ValueError for
        too many, or a node that is inside itself."""
        if id(node) in self._values:
            if not self._values[id(node)]:
                raise ValueError(f"what begins in line {_line(node)} holds itself")
            return self._values[id(node)]
        self._values[id(node)] = 0
        count = 1
        if getattr(node, "id", None) == "mapping":
            names = [str(key.value) for key, _ in node.value]
            for place, (key, value) in enumerate(node.value):
                if names[place] in names[:place]:
                    self._say(key, f"key {names[place]!r} is there twice; remove one")
                count += 1 + self.values_of(value)
        elif getattr(node, "id", None) == "sequence":
            count += sum(map(self.values_of, node.value))
        elif node is not None and node.tag.endswith(":int") and not _PLAIN.fullmatch(node.value):
            self._say(node, f"{node.value} would not be read as it looks; write it in decimal")
        if count > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES:,} values, what aliases repeat counted too")
        self._values[id(node)] = count
        return count

    def _say(self, node, what: str) -> None:
        self.complaints.append(f"line {_line(node)}: {what}")


def _line(node) -> int:
    return node.start_mark.line + 1
