"""What the plan expected the cells to take, beside what they took: a row a machine and study."""

from stepscope.config.estimate import BASES
from stepscope.report.data.machines import every_cell
from stepscope.tables.reader import Tables


def by_study(tables: Tables) -> list[dict]:
    """Rows with hardware, study, cells, expected_s and taken_s (seconds), and how many cells rest on each of BASES.

    Of the cells that ran and that the plan had an estimate of; none without estimate.csv.
    """
    expected = tables["estimate"]
    if expected.empty:
        return []
    both = (
        every_cell(tables)[["cell", "duration_s"]]
        .merge(expected, on="cell")
        .dropna(subset=["duration_s", "expected_s"])
    )
    return [
        {
            "hardware": hardware,
            "study": study,
            "cells": len(own),
            "expected_s": float(own["expected_s"].sum()),
            "taken_s": float(own["duration_s"].sum()),
            **{basis: int((own["basis"] == basis).sum()) for basis in BASES},
        }
        for (hardware, study), own in both.groupby(["hardware", "study"], sort=False)
    ]
