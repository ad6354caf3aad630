"""All tables of a run: what makes each, and how they are written."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
from pandas import DataFrame

from stepscope.files import write_whole

from . import (
    cards,
    cells,
    comparisons,
    learning,
    memory,
    models,
    ours,
    parallel,
    published,
    series,
    variants,
    warmup,
    work,
)
from .cells import MeasuredCell, told
from .schema import TABLES
from .tables import placed, typed

OF_RECORDS = {  # table: what records call it
    "ranks": "ranks",
    "rank_slowed": "slowed",
    "rank_memory": "memory",
    "sums": "accumulation",
    "dtypes": "toy",
    "forced": "forced",
    "curves": "curves",
}


def tables(
    found: list[MeasuredCell], samples: DataFrame, figures: list[Path]
) -> tuple[dict[str, DataFrame], list[str]]:
    """(table: rows, lines about what does not belong together).

    samples: by cells.read(); figures: files of published figures. Raises PublishedError.
    """
    measured = [cell for cell in found if cell.record]
    recorded = of_analyses(measured)
    of_series = series.of(found, samples)
    worked = work.with_work(recorded, measured)
    found_of: dict[str, DataFrame | Iterable[dict]] = {
        **recorded,
        **worked,
        "series": of_series,
        "comparisons": comparisons.of(measured, samples, of_series),
        "cells": cells.rows(found),
        "variants": variants.rows(found),
        "phases": work.by_the_clock(worked["phases"], of_series),
        "first_step": warmup.first_steps(measured),
        "memory_peak": memory.peak(recorded["memory_peak"], measured),
        "memory_largest": memory.with_formulas(recorded["memory_largest"], measured),
        "memory_saved": memory.with_formulas(recorded["memory_saved"], measured),
        **{name: told(measured, "tables", part) for name, part in OF_RECORDS.items()},
        "collectives": parallel.collectives(measured),
        "parallel_predicted": parallel.predictions(measured, of_series),
        "learning": learning.rows(measured),
        "warmup": warmup.rows(measured, samples),
        "models": models.rows(measured),
    }
    made = {name: DataFrame(rows) for name, rows in found_of.items()}
    places = typed(made["cells"], "cells")
    made["cards"] = cards.rows(of_series, places, made["models"])
    # As a reader of them has them: each with its cells' places.
    own = {name: placed(typed(made[name], name), places) for name in ours.READ}
    made["published"] = published.rows(figures, own)
    return made, list(cells.mixed(places))


def of_analyses(measured: list[MeasuredCell]) -> dict[str, DataFrame]:
    """The tables that analyses left, of all cells; without rows those that none did."""
    parts = {name: [typed(DataFrame(), name)] for name in TABLES}
    for cell in measured:
        for name, rows in cell.analysis.items():
            parts[name].append(rows.assign(**cell.key))
    return {name: pd.concat(frames, ignore_index=True) for name, frames in parts.items()}


def write(folder: Path, made: Mapping[str, DataFrame]) -> None:
    """Write tables by their names, all of them or none: the schema's columns in their order, no
    others; numbers in full."""
    texts = {}
    for name, rows in made.items():
        table = rows.reindex(columns=[*TABLES[name].columns]).convert_dtypes()
        texts[folder / f"{name}.csv"] = [table.to_csv(index=False)]
    write_whole(texts)
