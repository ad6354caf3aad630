"""warmup.csv and first_step.csv: what the first steps of a fresh process cost, and what they do to a mean."""

import numpy as np
import pandas as pd

from stepscope.results.cells import Cell

SKIPPED = (0, 1, 2, 5, 10)
MEASURED = 10  # steps after those that are skipped, as the write-ups have it
LEAST = 2


def rows(cells: list[Cell], samples: pd.DataFrame) -> list[dict]:
    """A row for each number of skipped steps of each timing cell; samples: by series.samples().

    Phased steps are the first of a process; a step is the sum of its phases. Mean and standard deviation are those of
    the processes, averaged (of the deviation its square).
    """
    timing = {cell.name: cell.place["machine"] for cell in cells if cell.place["study"] == "timing"}
    phased = samples[(samples["kind"] == "phased") & samples["cell"].isin(timing)]
    steps = phased.groupby(["cell", "process", "step"], observed=True)["seconds"].sum()
    found = []
    for name, own in steps.groupby(level="cell", observed=True, sort=False):
        processes = [one.to_numpy() for _, one in own.groupby(level="process")]
        key = {"machine": timing[name], "cell": name}
        key |= {"first": np.median([one[0] for one in processes])}
        key |= {"steady": np.median([np.median(one[len(one) // 2 :]) for one in processes])}
        for skipped in SKIPPED:
            parts = [one[skipped : skipped + MEASURED] for one in processes if len(one) >= skipped + LEAST]
            if parts:
                mean = np.mean([part.mean() for part in parts])
                std = np.sqrt(np.mean([part.var(ddof=1) for part in parts]))
                found.append(key | {"skipped": skipped, "mean": mean, "std": std})
    return found


def first_steps(cells: list[Cell]) -> list[dict]:
    """What profiles of a first step, beside a later one of the same process, put its time down to."""
    return [
        {
            "machine": cell.place["machine"],
            "cell": cell.name,
            "phase": "step",
            "part": part["part"],
            "first": part["first_seconds"],
            "later": part["steady_seconds"],
            "first_calls": part["calls_first"],
            "later_calls": part["calls_steady"],
        }
        for cell in cells
        for part in (cell.summary.get("first") or {}).get("parts", [])
    ]
