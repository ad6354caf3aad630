"""The side file known.json that StepScope's own memory study writes beside a snapshot: what the
program itself knew.

marks: [allocations, frees, step, phase, module], from so many "alloc" and "free_completed" events
on. tensors: storages that were seen at an address after so many events (`at`). made: the outputs of
each operator of one whole step. saved: what autograd kept of it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from stepscope.recordings.limits import reading, unpacked
from stepscope.snapshot import MEMORY_CATEGORIES, SnapshotError

NAMES = ("known.json", "known.json.gz")
_MOST = 1 << 62  # of each number, and of the bytes of a list: more would not fit into 64 bits
ADVICE = "give the one that was written with it, or omit it"


# From so many allocations and frees on, the program is in this step (None outside all), phase and
# module.
_MARK = ("allocations", "frees", "step", "phase", "module")


class Foreign(Exception):
    """The side file is that of another snapshot."""


@dataclass
class Known:
    """The file's lists as tables, whose columns hold what is right."""

    marks: pd.DataFrame
    tensors: pd.DataFrame
    made: pd.DataFrame
    saved: pd.DataFrame


def beside(snapshot: Path) -> Path | None:
    """The side file in the folder of a snapshot."""
    return next((path for name in NAMES if (path := snapshot.parent / name).is_file()), None)


def read(path: Path) -> Known:
    """Raises SnapshotError with one line for any other file."""
    with reading(path, "the side file of a snapshot", SnapshotError, ADVICE):
        return _known(json.loads(unpacked(path)))


def _known(content: dict) -> Known:
    if content.get("schema_version") != 1:
        raise ValueError(f"schema_version {content.get('schema_version')!r}")
    marks = [dict(zip(_MARK, each, strict=True)) for each in content["marks"]]
    return Known(
        marks=pd.DataFrame(_read(marks, *_MARK), dtype=object),
        tensors=_table(content["tensors"], "category", "name", "address", "at"),
        made=_table(content["made"], "phase", "module", "op", "cast_of"),
        saved=_table(content["saved"], "module", "op", "cast_of"),
    )


def _read(entries: list[dict], *fields: str) -> dict[str, list]:
    return {name: [_READ.get(name, _text)(entry[name]) for entry in entries] for name in fields}


def _table(entries: list[dict], *fields: str) -> pd.DataFrame:
    """Their fields, and those that all have; `cast` for `cast_of`."""
    found = _read(entries, *fields, "bytes", "shape", "dtype")
    if sum(found["bytes"]) >= _MOST:
        raise ValueError("its bytes add up to more than there can be")
    table = pd.DataFrame(found).rename(columns={"cast_of": "cast"})
    return table.astype({"bytes": np.int64})


def _category(name: str) -> str:
    if name not in MEMORY_CATEGORIES:
        raise ValueError(f"category {name!r}")
    return name


def _moment(counts: list[int]) -> tuple[int, int]:
    allocations, frees = counts
    return _count(allocations), _count(frees)


def shape(lengths: list[int]) -> str:
    """As in "4×16×512×512"; "" of a number."""
    return "×".join(str(int(length)) for length in lengths)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        raise ValueError(f"{value!r} is not a count")
    return value


def _text(value: object) -> str:
    """The value as text that UTF-8 can hold: half of a surrogate pair becomes "?"."""
    return str(value).encode("utf-8", "replace").decode()


_READ: dict[str, Callable] = {
    "allocations": _count,
    "frees": _count,
    "step": lambda step: None if step is None else _count(step),
    "bytes": _count,
    "shape": shape,
    "category": _category,
    "address": _count,
    "at": _moment,
    "cast_of": lambda source: source is not None,
}
