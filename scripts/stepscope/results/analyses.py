"""The tables that analyses of traces and snapshots leave beside a cell's record, put together for
all cells."""

from pathlib import Path

import pandas as pd
from pandas import DataFrame

from stepscope.results.cells import MeasuredCell
from stepscope.results.schema import TABLES, TEXT

OF_TRACE = (
    "kernels",
    "categories",
    "phases",
    "gaps",
    "modules",
    "timeline",
    "transfers",
    "processes",
    "warnings",
)
# Analyses that are no table of their own, and the columns of them that are read.
WITHIN = {
    "memory_summary": ["machine", "cell", "peak"],
    "memory_named": ["machine", "cell", "category", "bytes"],
}
OF_SNAPSHOT = ("memory_peak", "memory_timeline", "memory_largest", "memory_saved", *WITHIN)
NAMES = {"profile": OF_TRACE, "memory": OF_SNAPSHOT}


def read(cells: list[MeasuredCell]) -> tuple[dict[str, DataFrame], dict[str, str]]:
    """(table: its rows of all cells with `machine` and `cell`, cells whose analysis is damaged:
    why).

    A table that an analysis did not write has no rows there.
    """
    parts: dict[str, list[DataFrame]] = {name: [] for name in (*OF_TRACE, *OF_SNAPSHOT)}
    damaged = {}
    for cell in cells:
        for name in NAMES.get(cell.place["study"], ()):
            path = cell.folder / "analysis" / f"{name}.csv"
            if not path.exists():
                continue
            try:
                parts[name].append(_one(path, name).assign(**cell.key))
            except (OSError, ValueError) as error:
                why = f"analysis/{name}.csv is damaged: {error}; delete that folder and run again"
                damaged[cell.name] = why
    return {name: _together(name, frames) for name, frames in parts.items()}, damaged


def _one(path: Path, name: str) -> DataFrame:
    """The columns of one file that the schema has. Raises ValueError for what is no table."""
    columns = TABLES[name].columns if name in TABLES else ()
    text = [each.name for each in columns if each.kind == TEXT]
    types = dict.fromkeys(text, "str")
    known = _columns(name)
    table = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
    return table[[column for column in table if column in known]]


def _columns(name: str) -> list[str]:
    return WITHIN.get(name) or TABLES[name].names


def _together(name: str, frames: list[DataFrame]) -> DataFrame:
    """A table of all cells; without files an empty one with the columns that are read."""
    return pd.concat(frames, ignore_index=True) if frames else DataFrame(columns=_columns(name))
