"""learning.csv: what each variant of the learning study has learned, from its records, and what is
said of that.

The only place that judges it. *Does not learn*: in an order its held-out loss is no finite number,
or is below that of the bytes' frequencies by less than LEARNED of what the first variant's is.
Otherwise its loss over the first's, order by order, is judged as ratios of times are: *same* where
the interval lies within the margin, *worse* or *better* where it lies beyond, else *unclear*. Where
the first variant itself is not well below the frequencies nothing can be said.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from pandas import DataFrame

from . import statistics, verdicts
from .cells import MeasuredCell, beside, of_study, precision_of, told

LEARNED = 0.5  # of what the first variant gains over the bytes' frequencies
LEAST = 0.05  # of the frequencies' loss: what the first variant has to gain
LOST = "does not learn"
WORDS = {"faster": "worse", "slower": "better"}  # more of a loss is worse
SERIES = ["machine", "cell", "variant"]


def rows(cells: list[MeasuredCell]) -> DataFrame:
    """Of each variant, what it is and what is said of it."""
    own = of_study(cells, "learning")
    found = DataFrame([row for cell in own for row in _variants(cell)])
    ends = DataFrame(told(own, "tables", "ends"))
    if len(ends):
        firsts = {cell.name: next(iter(cell.variants)) for cell in own}
        found = found.merge(judged(ends, firsts), on=SERIES, how="left")
    return found


def _variants(cell: MeasuredCell) -> Iterator[dict]:
    """What each variant of a cell is."""
    for rank, (name, variant) in enumerate(cell.variants.items()):
        status, reason = cell.statuses()[name]
        yield {
            **cell.key,
            "variant": name,
            "rank": rank,
            "own_precision": precision_of(cell, name),
            "is_scaled": variant.get("scaled", False),
            "steps": cell.spec["steps"],
            "learning_rate": cell.spec.get("learning_rate"),  # records of before do not say it
            "status": status,
            "reason": reason,
        }


def judged(ends: DataFrame, firsts: Mapping[str, str]) -> DataFrame:
    """A row a variant: its loss with the interval between orders, that over the first's, verdict.

    ends: SERIES, order, held_out (missing: no finite number), frequencies. firsts: cell: its first
    variant. What does not learn spreads as nothing else does: it has no interval, and lends none.
    """
    ends = ends.assign(held_out=pd.to_numeric(ends["held_out"]))
    ends["is_first"] = ends["variant"] == ends["cell"].map(firsts)
    first = beside(ends, ends[ends["is_first"]], ["cell", "order"], "held_out")
    could = ends["frequencies"] - first
    gained = ends["frequencies"] - ends["held_out"]
    ends["ratio"] = ends["held_out"] / first
    ends["is_known"] = could >= LEAST * ends["frequencies"]
    ends["is_lost"] = ~(gained >= LEARNED * could)
    by = ends.groupby(SERIES, sort=False)
    found = by.agg(frequencies=("frequencies", "mean"), orders=("held_out", "count"))
    learning = ends[~by["is_lost"].transform("any")]
    ratios = _between(learning[~learning["is_first"]], "ratio")
    of_machine = ratios.index.get_level_values("machine").to_numpy()
    said = verdicts.judged(ratios, verdicts.MARGIN, of_machine)
    said = said.rename(columns={"low": "ratio_low", "high": "ratio_high"})
    losses = statistics.interval(_between(learning, "held_out"))
    losses = losses.rename(columns={"median": "held_out"})
    found = found.join(losses).join(said).fillna({"held_out": by["held_out"].mean()})
    verdict = found["verdict"].replace(WORDS).mask(by["is_lost"].any(), LOST)
    verdict = verdict.where(by["is_known"].all(), "unclear")
    return found.assign(verdict=verdict.mask(by["is_first"].any(), "")).reset_index()


def _between(ends: DataFrame, column: str) -> DataFrame:
    """Of each variant, by statistics.between_processes(): an order is a process."""
    logs = np.log(ends.set_index(SERIES)[column])
    return statistics.between_processes(logs, SERIES, ["machine"])
