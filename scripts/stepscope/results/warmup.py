"""warmup.csv and first_step.csv: what the first steps of a fresh process cost, and what they do to
a mean."""

import numpy as np
import pandas as pd
from pandas import DataFrame

from stepscope.axes import MODES

from .cells import MeasuredCell, of_study, told
from .tables import where

SKIPPED = (0, 1, 2, 5, 10)
MEASURED = 10  # steps after those that are skipped, as the write-ups have it
LEAST = 2
KEY = ["machine", "cell"]
SERIES = ["cell", "phase"]
PROCESS = [*SERIES, "process"]


def rows(cells: list[MeasuredCell], samples: DataFrame) -> DataFrame:
    """A row for each number of skipped steps, of the whole step and of each of its phases, of each
    timing cell; samples: by cells.read().

    Phased steps are the first of a process. All are means of steps within a process, averaged over
    the processes (of the standard deviation its square): a process that is slower throughout is so
    in each of them.
    """
    keys = DataFrame([cell.key for cell in of_study(cells, "timing")], columns=KEY)
    steps = _steps(where(samples, kind="phased", cell=list(keys["cell"])))
    of_process = steps.groupby(PROCESS)["seconds"]
    place, count = of_process.cumcount(), of_process.transform("size")
    late = steps[place >= count // 2].groupby(PROCESS)["seconds"].mean()
    of_series = DataFrame(
        {
            "first": steps[place == 0].groupby(SERIES)["seconds"].mean(),
            "steady": late.groupby(SERIES).mean(),
        }
    )
    means = []
    for skipped in SKIPPED:
        is_kept = place.between(skipped, skipped + MEASURED - 1) & (count >= skipped + LEAST)
        each = steps[is_kept].groupby(PROCESS)["seconds"].agg(["mean", "var"])
        mean = each.groupby(SERIES).mean().reset_index()
        means.append(mean.assign(skipped=skipped, std=np.sqrt(mean.pop("var"))))
    made = pd.concat(means).join(of_series, on=SERIES).sort_values(["phase", "skipped"])
    return keys.merge(made, on="cell")


def _steps(phased: DataFrame) -> DataFrame:
    """Seconds of each phase of each step, and of sums of them."""
    passes = where(phased, phase=["forward", "backward"])
    both = passes.assign(phase=MODES["forward-backward"].whole)
    every = pd.concat([phased, both, phased.assign(phase=MODES["step"].whole)])
    return every.groupby([*PROCESS, "step"])["seconds"].sum().reset_index()


def first_steps(cells: list[MeasuredCell]) -> DataFrame:
    """What profiles of a first step, beside a later one of the same process, put its time down
    to; and what the GPU did before them."""
    steps = DataFrame(told(cells, "first", "parts")).assign(phase="step")
    before = DataFrame(told(cells, "first", "before")).assign(phase="before the steps")
    names = {"first_seconds": "first", "second_seconds": "second", "steady_seconds": "later"}
    return pd.concat([steps, before]).rename(columns=names)
