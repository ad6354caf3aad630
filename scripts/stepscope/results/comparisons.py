"""comparisons.csv: pairs of a cell's variants, which were measured in turns in the same
processes."""

import itertools

import numpy as np
import pandas as pd

from stepscope.results import alone, statistics, verdicts
from stepscope.results.cells import MeasuredCell
from stepscope.results.schema import TABLES

PASS = alone.STEP[2:]  # of which step or pass of a variant a time is
PAIR = ["cell", "a", "b"]
SERIES = [*PAIR, *PASS, "quantity"]
FAMILY = ["machine", "study"]  # whose false discoveries are controlled together
ALIKE = [*FAMILY, "limits", "in_turns"]  # within which pairs lend each other their spread
# Kind of samples that are compared: their quantity. Of a ladder whole steps alone.
COMPARED = {"free": "time", "host-free": alone.HOST_FREE}


def of(cells: list[MeasuredCell], samples: pd.DataFrame, series: pd.DataFrame) -> pd.DataFrame:
    """All rows, in the order of the pairs. samples: by series.prepared(); series: by series.of(),
    for what limits."""
    if not any(cell.record for cell in cells):
        return pd.DataFrame(columns=TABLES["comparisons"].names)
    ratios = of_processes(pairs(cells), samples)
    by = ratios.groupby(SERIES, sort=False)
    found = by.agg(processes=("process", "count"), rounds=("rounds", "sum")).reset_index()
    found = found.merge(_limits(series), on=[*PAIR, *PASS], how="left")
    is_host_free = found["quantity"] == alone.HOST_FREE
    found["limits"] = found["limits"].mask(is_host_free, "gpu")
    found["in_turns"] = found["rounds"] > 0
    places = pd.DataFrame([{"cell": cell.name, **cell.place} for cell in cells])
    found = found.merge(places.drop(columns="mode"), on="cell").set_index(SERIES)
    logs = ratios.set_index(SERIES).join(found[ALIKE]).set_index(ALIKE, append=True)["ratio"]
    between = statistics.between_processes(logs, [*SERIES, *ALIKE], ALIKE)
    between = between.droplevel([*ALIKE]).reindex(found.index)
    families = found["machine"] + "/" + found["study"]
    judged = verdicts.judged(between, _margins(found), families)
    found = found.join(judged).reset_index()
    found["length"] = found["length"].where(found["length"] > 0)
    return found


def _margins(found: pd.DataFrame) -> np.ndarray:
    """From which ratio on a difference counts, of each pair: what the host cannot change repeats
    better, and so does what was measured in turns."""
    is_host_free = found.index.get_level_values("quantity") == alone.HOST_FREE
    is_of_gpu = (found["in_turns"] | is_host_free) & (found["limits"] == "gpu")
    return np.where(is_of_gpu, verdicts.MARGIN_OF_GPU, verdicts.MARGIN)


def of_processes(pairs: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """By SERIES and process: the median over rounds of the logarithm of time of a over time of b,
    and `rounds`.

    A variant's time in a round is the median of its steps. Where there are no turns a process is
    one round.
    """
    is_compared = samples["kind"].isin(COMPARED) & samples["mode"].isin(["", "step"])
    steps = samples[is_compared & ~samples["warmup"].astype(bool)]
    steps = steps.assign(quantity=steps["kind"].astype(str).map(COMPARED))
    turn = ["process", "round", *PASS, "quantity"]
    by = steps.groupby(["cell", "variant", *turn], observed=True, sort=False)
    times = by["seconds"].median().reset_index()
    words = ["cell", "variant", "mode", "phase", "direction"]
    times[words] = times[words].astype(str)
    of_a = pairs.merge(times, left_on=["cell", "a"], right_on=["cell", "variant"])
    both = of_a.merge(
        times,
        left_on=["cell", "b", *turn],
        right_on=["cell", "variant", *turn],
        suffixes=("_a", "_b"),
    )
    both["ratio"] = np.log(both["seconds_a"] / both["seconds_b"])
    both["rounds"] = both["round"] > 0
    of_process = both.groupby([*SERIES, "process"], sort=False)
    return of_process.agg(ratio=("ratio", "median"), rounds=("rounds", "sum")).reset_index()


def _limits(series: pd.DataFrame) -> pd.DataFrame:
    """What limits each pair: what limits both, `launches` where they limit one, else `unknown`."""
    own = series[(series["quantity"] == "time") & (series["limits"] != "")]
    own = own[["cell", "variant", *PASS, "limits"]]
    own = own.assign(length=own["length"].fillna(0).astype(int))
    both = own.merge(own, on=["cell", *PASS], suffixes=("_a", "_b"))
    a, b = both["limits_a"], both["limits_b"]
    of_unlike = np.where((a == "launches") | (b == "launches"), "launches", "unknown")
    both["limits"] = np.where(a == b, a, of_unlike)
    named = both.rename(columns={"variant_a": "a", "variant_b": "b"})
    return named[[*PAIR, *PASS, "limits"]]


def pairs(cells: list[MeasuredCell]) -> pd.DataFrame:
    """cell, a, b: of variants that change one another (a ladder's) each with the one that it comes
    after and with the first; of others (attention's) all."""
    rows = []
    for cell in cells:
        variants = cell.spec.get("variants", [])
        names = [one["name"] for one in variants]
        changes = [(one["after"], one["name"]) for one in variants if one.get("after") in names]
        if changes:
            with_first = [(names[0], name) for name in names[1:]]
            chosen = dict.fromkeys([*changes, *with_first])
        else:
            chosen = dict.fromkeys(itertools.combinations(names, 2))
        rows += [(cell.name, a, b) for a, b in chosen]
    return pd.DataFrame(rows, columns=PAIR)
