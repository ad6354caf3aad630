"""Reading results/tables/*.csv: each column has the type that its table declares."""

import csv
import io
from pathlib import Path

import pandas as pd

from stepscope.tables.registry import COLLECTED, TABLES
from stepscope.tables.schema import FLAG, NUMBER, TEXT

_PLAIN = {"dtype": "str", "keep_default_na": False, "na_values": [""], "encoding": "utf-8"}


class Tables:
    """The tables of some studies in a folder, read when asked for. A table that is not there is an empty one."""

    def __init__(self, folder: Path, studies: list[str]):
        self.folder = Path(folder)
        self.studies = list(studies)
        self._read: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        """A study's table, a row a cell, by the study's name; one of its other tables by that and its own.

        So `profile_kernels` is of the study `profile`.
        """
        if name not in self._read:
            path = self.folder / f"{name}.csv"
            own = any(name == study or name.startswith(f"{study}_") for study in self.studies)
            wanted = path.exists() and (own or name in COLLECTED)
            self._read[name] = typed(pd.read_csv(path, **_PLAIN), name) if wanted else pd.DataFrame()
        return self._read[name]

    def samples(self, study: str, cells: list[str], columns: list[str]) -> pd.DataFrame:
        """The raw samples of a few cells; only their lines are parsed, since a large grid has millions."""
        name = f"{study}_samples"
        path = self.folder / f"{name}.csv"
        if study not in self.studies or not path.exists() or not cells:
            return pd.DataFrame(columns=columns)
        return typed(pd.read_csv(_lines_of(path, cells), usecols=columns, **_PLAIN), name)


def _lines_of(path: Path, cells: list[str]) -> io.StringIO:
    """The head of a samples file and the lines of some cells, whose name is the first column."""
    starts = io.StringIO()
    csv.writer(starts, lineterminator=",\n").writerows([cell] for cell in cells)
    wanted = tuple(starts.getvalue().splitlines())
    with path.open(encoding="utf-8", newline="") as lines:
        return io.StringIO("".join([next(lines), *(line for line in lines if line.startswith(wanted))]))


def typed(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """A table that was read as text, with its columns as they are declared; text that is missing is None.

    A column that is not declared, as another version may have written it, is of numbers if all of its values are.
    """
    known = TABLES[table].by_name if table in TABLES else {}
    kinds = {name: known[name].kind if name in known else _kind_of(frame[name]) for name in frame.columns}
    return pd.DataFrame({name: _as(kind, frame[name]) for name, kind in kinds.items()}, index=frame.index)


def _kind_of(values: pd.Series) -> str:
    there = values.dropna()
    return NUMBER if pd.to_numeric(there, errors="coerce").notna().all() else TEXT


def _as(kind: str, values: pd.Series) -> pd.Series:
    if kind == TEXT:
        return values.astype("object").where(values.notna(), None)
    if kind == FLAG:
        return values.astype("str").str.lower().isin(["true", "1", "1.0"])
    return pd.to_numeric(values, errors="coerce").astype(float)
