"""comparisons.csv: pairs of a cell's variants, which were measured in turns in the same
processes."""

import itertools

import numpy as np
import pandas as pd

from stepscope.results import statistics, verdicts
from stepscope.results.cells import MeasuredCell
from stepscope.results.schema import COMPARISONS

PLACE = ["mode", "phase", "length", "direction"]
PAIR = ["cell", "a", "b", *PLACE, "quantity"]
FAMILY = ["machine", "study"]  # whose false discoveries are controlled together
ALIKE = [*FAMILY, "limits", "in_turns"]  # within which pairs lend each other their spread
QUANTITIES = {
    "free": "time",
    "host-free": "host_free_time",
}  # of a kind of steps; of a ladder those of whole steps alone


def of(cells: list[MeasuredCell], samples: pd.DataFrame, series: pd.DataFrame) -> pd.DataFrame:
    """All rows, in the order of the pairs. samples: by series.prepared(); series: by series.of(),
    for what limits."""
    if not any(cell.record for cell in cells):
        return pd.DataFrame(columns=COMPARISONS.names)
    ratios = of_processes(pairs(cells), samples)
    found = ratios.groupby(PAIR, sort=False).agg(
        processes=("process", "count"), rounds=("rounds", "sum")
    )
    found = found.reset_index().merge(_limits(series), on=["cell", "a", "b", *PLACE], how="left")
    is_host_free = found["quantity"] == "host_free_time"
    found["limits"] = found["limits"].mask(is_host_free, "gpu")
    place = pd.DataFrame([{"cell": cell.name, **cell.place} for cell in cells]).drop(columns="mode")
    found = found.merge(place, on="cell").set_index(PAIR)
    found["in_turns"] = found["rounds"] > 0
    logs = ratios.set_index(PAIR).join(found[ALIKE]).set_index(ALIKE, append=True)["ratio"]
    between = (
        statistics.between_processes(logs, [*PAIR, *ALIKE], ALIKE)
        .droplevel(ALIKE)
        .reindex(found.index)
    )
    is_repeatable = found["in_turns"] | (
        found.index.get_level_values("quantity") == "host_free_time"
    )
    is_of_gpu = is_repeatable & (found["limits"] == "gpu")
    margins = np.where(is_of_gpu, verdicts.MARGIN_OF_GPU, verdicts.MARGIN)
    judged = verdicts.judged(between, margins, found["machine"] + "/" + found["study"])
    found = found.join(judged).reset_index()
    found["length"] = found["length"].where(found["length"] > 0)
    return found


def of_processes(pairs: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """By PAIR and process: the median over rounds of the logarithm of time of a over time of b, and
    `rounds`.

    A variant's time in a round is the median of its steps. Where there are no turns a process is
    one round.
    """
    is_compared = samples["kind"].isin(QUANTITIES) & samples["mode"].isin(["", "step"])
    steps = samples[is_compared & ~samples["warmup"].astype(bool)]
    steps = steps.assign(quantity=steps["kind"].astype(str).map(QUANTITIES))
    where = ["cell", "variant", "process", "round", *PLACE, "quantity"]
    times = steps.groupby(where, observed=True, sort=False)["seconds"].median().reset_index()
    times[["cell", "variant", "mode", "phase", "direction"]] = times[
        ["cell", "variant", "mode", "phase", "direction"]
    ].astype(str)
    both = pairs.merge(times, left_on=["cell", "a"], right_on=["cell", "variant"]).merge(
        times,
        left_on=["cell", "b", *where[2:]],
        right_on=["cell", "variant", *where[2:]],
        suffixes=("_a", "_b"),
    )
    both["ratio"] = np.log(both["seconds_a"] / both["seconds_b"])
    both["rounds"] = both["round"] > 0
    by = both.groupby([*PAIR, "process"], sort=False)
    return by.agg(ratio=("ratio", "median"), rounds=("rounds", "sum")).reset_index()


def _limits(series: pd.DataFrame) -> pd.DataFrame:
    """What limits each pair: what limits both, `launches` where they limit one, else `unknown`."""
    own = series[(series["quantity"] == "time") & (series["limits"] != "")][
        ["cell", "variant", *PLACE, "limits"]
    ]
    own = own.assign(length=own["length"].fillna(0).astype(int))
    both = own.merge(own, on=["cell", *PLACE], suffixes=("_a", "_b"))
    a, b = both["limits_a"], both["limits_b"]
    both["limits"] = np.where(
        a == b, a, np.where((a == "launches") | (b == "launches"), "launches", "unknown")
    )
    return both.rename(columns={"variant_a": "a", "variant_b": "b"})[
        ["cell", "a", "b", *PLACE, "limits"]
    ]


def pairs(cells: list[MeasuredCell]) -> pd.DataFrame:
    """cell, a, b: of a ladder each variant with the one that it comes after and with the first; of
    attention all."""
    rows = []
    for cell in cells:
        variants = cell.spec.get("variants", [])
        names = [one["name"] for one in variants]
        if cell.place["study"] == "attention":
            rows += [(cell.name, a, b) for a, b in itertools.combinations(names, 2)]
        else:
            after = [(one["after"], one["name"]) for one in variants if one.get("after") in names]
            first = [(names[0], name) for name in names[1:]]
            rows += [(cell.name, a, b) for a, b in dict.fromkeys([*after, *first])]
    return pd.DataFrame(rows, columns=PAIR[:3])
