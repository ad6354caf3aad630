"""warmup.csv and first_step.csv: what the first steps of a fresh process cost, and what they do to
a mean."""

import numpy as np
import pandas as pd

from stepscope.axes import MODES
from stepscope.results.cells import MeasuredCell

SKIPPED = (0, 1, 2, 5, 10)
MEASURED = 10  # steps after those that are skipped, as the write-ups have it
LEAST = 2
SERIES = ["cell", "phase"]


def rows(cells: list[MeasuredCell], samples: pd.DataFrame) -> pd.DataFrame:
    """A row for each number of skipped steps, of the whole step and of each of its phases, of each
    timing cell; samples: by series.prepared().

    Phased steps are the first of a process. Mean and standard deviation are those of the processes,
    averaged (of the deviation its square).
    """
    timing = {cell.name: cell.place["machine"] for cell in cells if cell.place["study"] == "timing"}
    steps = _steps(samples[(samples["kind"] == "phased") & samples["cell"].isin(timing)])
    of_process = steps.groupby([*SERIES, "process"])
    steps["place"] = of_process.cumcount()
    steps["count"] = of_process["step"].transform("size")
    first = steps[steps["place"] == 0].groupby(SERIES)["seconds"].median()
    late = steps[steps["place"] >= steps["count"] // 2].groupby([*SERIES, "process"])["seconds"]
    steady = late.median().groupby(SERIES).median()
    means = pd.concat([_after(steps, skipped) for skipped in SKIPPED])
    made = means.join(first.rename("first")).join(steady.rename("steady")).reset_index()
    made.insert(0, "machine", made["cell"].map(timing))
    order = made["cell"].map({name: place for place, name in enumerate(timing)})
    return made.iloc[np.lexsort([made["skipped"], made["phase"], order])]


def _steps(phased: pd.DataFrame) -> pd.DataFrame:
    """Seconds of each phase of each step, and of sums of them."""
    plain = phased[["cell", "process", "step", "seconds"]].assign(phase=phased["phase"].astype(str))
    passes = plain[plain["phase"].isin(["forward", "backward"])]
    both = passes.assign(phase=MODES["forward-backward"].whole)
    every = pd.concat([plain, both, plain.assign(phase=MODES["step"].whole)])
    every["cell"] = every["cell"].astype(str)
    return every.groupby([*SERIES, "process", "step"])["seconds"].sum().reset_index()


def _after(steps: pd.DataFrame, skipped: int) -> pd.DataFrame:
    """By SERIES: mean and deviation of the steps that come after so many, where there are LEAST."""
    end = skipped + MEASURED
    is_kept = (steps["place"] >= skipped) & (steps["place"] < end)
    kept = steps[is_kept & (steps["count"] >= skipped + LEAST)]
    of_processes = kept.groupby([*SERIES, "process"])["seconds"].agg(["mean", "var"])
    each = of_processes.groupby(SERIES).mean()
    return pd.DataFrame({"skipped": skipped, "mean": each["mean"], "std": np.sqrt(each["var"])})


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
