"""The tables that analyses of traces and snapshots leave beside a cell's record, put together for
all cells."""

import pandas as pd
from pandas import DataFrame

from stepscope.results import tables
from stepscope.results.cells import MeasuredCell

OF_STUDY = {
    "profile": (
        "kernels",
        "categories",
        "phases",
        "gaps",
        "modules",
        "timeline",
        "transfers",
        "processes",
        "warnings",
    ),
    "memory": ("memory_peak", "memory_timeline", "memory_largest", "memory_saved"),
}


def read(cells: list[MeasuredCell]) -> tuple[dict[str, DataFrame], dict[str, str]]:
    """(table: its rows of all cells, as the schema has them, cells whose analysis is damaged: why).

    A table that an analysis did not write has no rows there.
    """
    parts = {name: [tables.typed(DataFrame(), name)] for own in OF_STUDY.values() for name in own}
    damaged = {}
    for cell in cells:
        for name in OF_STUDY.get(cell.place["study"], ()):
            try:
                rows = tables.read(cell.folder / "analysis" / f"{name}.csv", name)
            except (OSError, ValueError) as error:
                why = f"analysis/{name}.csv is damaged: {error}; delete that folder and run again"
                damaged[cell.name] = why
            else:
                parts[name].append(rows.assign(**cell.key))
    return {name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()}, damaged
