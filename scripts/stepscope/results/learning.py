"""learning.csv and curves.csv: what each variant of the learning study has learned, from its
records, and what is said of that.

The only place that judges it. *Does not learn*: in an order its held-out loss is no finite number,
or is below that of the bytes' frequencies by less than LEARNED of what the first variant's is.
Otherwise its loss over the first's, order by order, is judged as ratios of times are: *same* where
the interval lies within the margin, *worse* or *better* where it lies beyond, else *unclear*. Where
the first variant itself is not well below the frequencies nothing can be said.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from stepscope.results import statistics, verdicts
from stepscope.results.cells import MeasuredCell, of_study, told
from stepscope.results.mapped import beside

LEARNED = 0.5  # of what the first variant gains over the bytes' frequencies
LEAST = 0.05  # of the frequencies' loss: what the first variant has to gain
LOST = "does not learn"
WORDS = {"faster": "worse", "slower": "better"}  # more of a loss is worse
SERIES = ["machine", "cell", "variant"]


def tables(cells: list[MeasuredCell]) -> dict[str, pd.DataFrame]:
    """Both."""
    own = of_study(cells, "learning")
    found = pd.DataFrame([row for cell in own for row in _variants(cell)])
    ends = pd.DataFrame(told(own, "tables", "ends"))
    if len(ends):
        firsts = {cell.name: cell.spec["variants"][0]["name"] for cell in own}
        found = found.merge(judged(ends, firsts), on=SERIES, how="left")
    return {"learning": found, "curves": pd.DataFrame(told(own, "tables", "curves"))}


def _variants(cell: MeasuredCell) -> Iterator[dict]:
    """What each variant of a cell is."""
    statuses = cell.statuses()
    for rank, variant in enumerate(cell.spec["variants"]):
        status, reason = statuses[variant["name"]]
        yield {
            **cell.key,
            "variant": variant["name"],
            "rank": rank,
            "own_precision": variant.get("precision", cell.spec["precision"]),
            "is_scaled": variant.get("scaled", False),
            "steps": cell.spec["steps"],
            "status": status,
            "reason": reason,
        }


def judged(ends: pd.DataFrame, firsts: Mapping[str, str]) -> pd.DataFrame:
    """A row a variant: its loss with the interval between orders, that over the first's, verdict.

    ends: SERIES, order, held_out (missing: no finite number), frequencies. firsts: cell: its first
    variant. What does not learn spreads as nothing else does: it has no interval, and lends none.
    """
    ends = ends.assign(held_out=pd.to_numeric(ends["held_out"]))
    is_first = ends["variant"] == ends["cell"].map(firsts)
    ends["first"] = beside(ends, ends[is_first], ["cell", "order"], "held_out")
    could = ends["frequencies"] - ends["first"]
    gained = ends["frequencies"] - ends["held_out"]
    ends["is_known"] = could >= LEAST * ends["frequencies"]
    ends["is_lost"] = ~(gained >= LEARNED * could)
    found = ends.groupby(SERIES, sort=False).agg(
        frequencies=("frequencies", "mean"),
        mean=("held_out", "mean"),
        orders=("held_out", "count"),
        is_known=("is_known", "all"),
        is_lost=("is_lost", "any"),
    )
    learning = ends.join(found["is_lost"].rename("never"), on=SERIES).query("not never")
    others = learning[~is_first[learning.index]]
    ratios = _between(others, others["held_out"] / others["first"])
    of_machine = ratios.index.get_level_values("machine").to_numpy()
    said = verdicts.judged(ratios, np.full(len(ratios), verdicts.MARGIN), of_machine)
    said = said.rename(columns={"low": "ratio_low", "high": "ratio_high"}).drop(columns="p")
    losses = statistics.interval(_between(learning, learning["held_out"]))
    found = found.join(losses).join(said)
    verdict = found["verdict"].replace(WORDS).mask(found["is_lost"], LOST)
    is_other = ~ends.assign(is_first=is_first).groupby(SERIES, sort=False)["is_first"].any()
    found["verdict"] = verdict.where(found["is_known"], "unclear").where(is_other, "")
    found["held_out"] = found["median"].fillna(found["mean"])
    return found.drop(columns=["mean", "median", "is_known", "is_lost"]).reset_index()


def _between(ends: pd.DataFrame, values: pd.Series) -> pd.DataFrame:
    """Of each variant, by statistics.between_processes(): an order is a process."""
    logs = np.log(values).set_axis(pd.MultiIndex.from_frame(ends[SERIES]))
    return statistics.between_processes(logs, SERIES, ["machine"])
