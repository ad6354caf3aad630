"""All tables of a run: what makes each, and how they are written."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from stepscope.files import write_whole
from stepscope.results import (
    analyses,
    cells,
    comparisons,
    memory,
    models,
    precision,
    published,
    series,
    warmup,
)
from stepscope.results.cells import MeasuredCell, Rows
from stepscope.results.schema import TABLES


def tables(
    found: list[MeasuredCell], samples: pd.DataFrame, figures: list[Path]
) -> tuple[dict[str, Rows], dict[str, str], list[str]]:
    """(table: rows, cells whose analysis is damaged: why, lines about what cannot be true or does
    not belong together).

    samples: by cells.read(); figures: files of published figures. Raises PublishedError.
    """
    measured = [cell for cell in found if cell.record]
    recorded, damaged = analyses.read(measured)
    snapshots = memory.Snapshots(measured, recorded)
    samples = series.prepared(samples)
    of_series = series.of(found, samples, memory.values(measured, snapshots))
    made = {
        "series": of_series,
        "comparisons": comparisons.of(measured, samples, of_series),
        "cells": cells.rows(found),
        **{name: recorded[name] for name in analyses.OF_TRACE},
        "first_step": warmup.first_steps(measured),
        "memory_peak": memory.peak(recorded["memory_peak"], snapshots),
        "memory_timeline": recorded["memory_timeline"],
        "memory_largest": memory.with_formulas(recorded["memory_largest"], snapshots),
        "memory_saved": memory.with_formulas(recorded["memory_saved"], snapshots),
        "memory_predicted": memory.predictions(snapshots),
        "sums": precision.sums(measured),
        "dtypes": precision.dtypes(measured),
        "forced": precision.forced(measured),
        "warmup": warmup.rows(measured, samples),
        "models": models.rows(measured),
        "published": published.rows(figures, of_series),
    }
    return (
        made,
        damaged,
        [*series.beyond(of_series), *series.differing(measured), *cells.mixed(made["cells"])],
    )


def write(folder: Path, made: Mapping[str, Rows]) -> None:
    """Write tables by their names, all of them or none: the schema's columns in their order,
    numbers in full."""
    frames = {
        name: rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
        for name, rows in made.items()
    }
    write_whole(
        {
            folder / f"{name}.csv": [frame.reindex(columns=TABLES[name].names).to_csv(index=False)]
            for name, frame in frames.items()
        }
    )
