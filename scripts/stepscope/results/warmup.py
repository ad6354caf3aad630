"""warmup.csv and first_step.csv: what the first steps of a fresh process cost, and what they do to
a mean."""

import numpy as np
import pandas as pd

from stepscope.results.cells import MeasuredCell

SKIPPED = (0, 1, 2, 5, 10)
MEASURED = 10  # steps after those that are skipped, as the write-ups have it
LEAST = 2


def rows(cells: list[MeasuredCell], samples: pd.DataFrame) -> pd.DataFrame:
    """A row for each number of skipped steps of each timing cell; samples: by series.prepared().

    Phased steps are the first of a process; a step is the sum of its phases. Mean and standard
    deviation are those of the processes, averaged (of the deviation its square).
    """
    timing = {cell.name: cell.place["machine"] for cell in cells if cell.place["study"] == "timing"}
    phased = samples[(samples["kind"] == "phased") & samples["cell"].isin(timing)]
    by = phased.groupby([phased["cell"].astype(str), "process", "step"], sort=True)["seconds"]
    steps = by.sum().reset_index()
    place = steps.groupby(["cell", "process"]).cumcount()
    steps["count"] = steps.groupby(["cell", "process"])["step"].transform("size")
    first = steps[place == 0].groupby("cell")["seconds"].median()
    late = steps[place >= steps["count"] // 2]
    steady = late.groupby(["cell", "process"])["seconds"].median().groupby("cell").median()
    found = []
    for skipped in SKIPPED:
        kept = steps[
            (place >= skipped) & (place < skipped + MEASURED) & (steps["count"] >= skipped + LEAST)
        ]
        each = (
            kept.groupby(["cell", "process"])["seconds"].agg(["mean", "var"]).groupby("cell").mean()
        )
        found.append(
            pd.DataFrame({"skipped": skipped, "mean": each["mean"], "std": np.sqrt(each["var"])})
        )
    made = pd.concat(found).join(first.rename("first")).join(steady.rename("steady")).reset_index()
    made.insert(0, "machine", made["cell"].map(timing))
    number = {name: at for at, name in enumerate(timing)}
    return made.iloc[np.lexsort([made["skipped"], made["cell"].map(number)])]


def first_steps(cells: list[MeasuredCell]) -> list[dict]:
    """What profiles of a first step, beside a later one of the same process, put its time down
    to."""
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
