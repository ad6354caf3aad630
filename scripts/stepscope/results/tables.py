"""Reading results/tables/*.csv: each column has the type that the schema declares."""

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Self

import pandas as pd
from pandas import DataFrame, Series

from stepscope.axes import BUILT

from .schema import FLAG, NUMBER, PLACE, TABLES


class Tables:
    """The tables of a folder, read when asked for; of one machine, if one is named.

    own_steps: True for the cells of steps of one's own alone, False for all others, None for both.
    Missing text is "", a missing number NaN. A table that is not there is an empty one with its
    columns. A table of cells that does not say what they are has the columns of their place,
    options and mode from `cells`, too.
    """

    def __init__(
        self, folder: Path | str, machine: str | None = None, own_steps: bool | None = None
    ):
        self.folder, self.machine, self._own_steps = Path(folder), machine, own_steps
        self._read: dict[tuple[str, bool | None], DataFrame] = {}  # by name and own_steps

    def __getitem__(self, name: str) -> DataFrame:
        """The whole table. Raises KeyError for a name that the schema does not have."""
        return self._only(name, self._own_steps)

    def seen(self, own_steps: bool | None) -> Self:
        """The same tables with other cells, read once for both."""
        other = copy.copy(self)
        other._own_steps = own_steps
        return other

    def _only(self, name: str, own_steps: bool | None) -> DataFrame:
        key = name, own_steps
        if key not in self._read:
            if own_steps is None:
                found = self._placed(name, read(self.folder / f"{name}.csv", name))
            else:
                found = self._only(name, None)
                if "precision" in found:
                    is_seen = (found["precision"] == BUILT) == own_steps
                    found = found[is_seen].reset_index(drop=True)
            self._read[key] = found
        return self._read[key]

    def rows(self, name: str, **values: object) -> DataFrame:
        """The rows whose columns have these values; of a list, tuple or set one of them."""
        return where(self[name], **values)

    def row(self, name: str, **values: object) -> dict:
        """The first of them; an empty dictionary where there is none."""
        return next(iter(self.rows(name, **values).head(1).to_dict("records")), {})

    def cards(self, cells: Iterable[str]) -> set[str]:
        """The GPUs, by their UUIDs, that cells were measured on: a ratio of two is one of two
        cards."""
        return set(self.rows("cells", cell=list(cells))["gpu_uuid"]) - {""}

    @property
    def machines(self) -> list[str]:
        """Labels of all machines that have a cell, in the order of the plan."""
        return list(dict.fromkeys(self["cells"]["machine"]))

    def _placed(self, name: str, frame: DataFrame) -> DataFrame:
        """A table as it was read, of this machine, with the places of its cells."""
        if "machine" not in frame:  # published figures: "" where nothing of ours is beside one
            frame = frame.assign(machine=frame["cell"].str.split("/").str[0])
        if self.machine:
            frame = frame[frame["machine"].isin([self.machine, ""])].reset_index(drop=True)
        is_of_cells = "cell" in frame and name != "cells"
        return placed(frame, self._only("cells", None)) if is_of_cells else frame


def where(frame: DataFrame, **values: object) -> DataFrame:
    """The rows whose columns have these values; of a list, tuple or set one of them."""
    for column, value in values.items():
        one_of = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        frame = frame[frame[column].isin(one_of)]
    return frame


def placed(frame: DataFrame, cells: DataFrame) -> DataFrame:
    """A table of cells with the columns of their places, options and mode that it lacks."""
    missing = [column for column in PLACE if column not in frame]
    whole = frame.merge(cells[["cell", *missing]], on="cell", how="left")
    return whole.fillna(dict.fromkeys(set(missing) - {"context", "batch"}, ""))


def read(path: Path, name: str) -> DataFrame:
    """One table of the schema from a file; empty where there is none."""
    if not path.exists():
        return typed(DataFrame(), name)
    plain = pd.read_csv(path, dtype="str", keep_default_na=False, na_values=[""], encoding="utf-8")
    return typed(plain, name)


def typed(frame: DataFrame, name: str) -> DataFrame:
    """The columns of the schema in their order, as numbers, flags and text."""
    columns = TABLES[name].columns
    frame = frame.reindex(columns=list(columns))
    return DataFrame({name: _as(each.kind, frame[name]) for name, each in columns.items()})


def _as(kind: str, values: Series) -> Series:
    """Values as the column's kind has them."""
    if kind == NUMBER:
        return pd.to_numeric(values, errors="coerce").astype(float)
    if kind == FLAG:
        return values.astype("str").str.lower().isin(["true", "1", "1.0"])
    return values.astype("object").where(values.notna(), "")
