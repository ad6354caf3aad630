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

from . import SnapshotError

NAMES = ("known.json", "known.json.gz")
ADVICE = "give the one that was written with it, or omit it"


# From so many allocations and frees on, the program is in this step (None outside all), phase and
# module.
_MARK = ["allocations", "frees", "step", "phase", "module"]


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
    marks = pd.DataFrame(content["marks"], columns=_MARK, dtype=object)
    return Known(
        marks=marks.assign(phase=marks["phase"].map(_text), module=marks["module"].map(_text)),
        tensors=_table(content["tensors"], "category", "name", "address", "at"),
        made=_table(content["made"], "phase", "module", "op", "cast_of"),
        saved=_table(content["saved"], "module", "op", "cast_of"),
    )


def _table(entries: list[dict], *fields: str) -> pd.DataFrame:
    """Their fields, and those that all have; `cast` for `cast_of`."""
    columns = {
        name: [_READ.get(name, _text)(entry[name]) for entry in entries]
        for name in (*fields, "bytes", "shape", "dtype")
    }
    return pd.DataFrame(columns).rename(columns={"cast_of": "cast"}).astype({"bytes": np.int64})


def shape(lengths: list[int]) -> str:
    """As in "4×16×512×512"; "" of a number."""
    return "×".join(str(int(length)) for length in lengths)


def _text(value: object) -> str:
    """The value as text that UTF-8 can hold: half of a surrogate pair becomes "?"."""
    return str(value).encode("utf-8", "replace").decode()


_READ: dict[str, Callable] = {
    "bytes": int,
    "shape": shape,
    "address": int,
    "at": tuple,  # allocations, frees
    "cast_of": lambda source: source is not None,
}
