"""comparisons.csv: pairs of a cell's variants, which were measured in turns in the same
processes."""

import itertools

import numpy as np
from pandas import DataFrame, Series

from . import alone, statistics, verdicts
from .cells import MeasuredCell, beside, came_after, places
from .tables import where

PASS = alone.STEP[2:]  # of which step or pass of a variant a time is
PAIR = ["cell", "a", "b"]
SERIES = [*PAIR, *PASS, "quantity"]
# Within which pairs lend each other their spread.
ALIKE = ["machine", "study", "limits", "in_turns"]
# Kind of samples that are compared: their quantity. Of a ladder whole steps alone.
COMPARED = {"free": "time", "host-free": alone.HOST_FREE}


def of(cells: list[MeasuredCell], samples: DataFrame, series: DataFrame) -> DataFrame:
    """All rows, in the order of the pairs. samples: by cells.read(); series: by series.of(), for
    what limits."""
    ratios = of_processes(pairs(cells), samples)
    by = ratios.groupby(SERIES, sort=False)
    found = by.agg(processes=("process", "count"), rounds=("rounds", "sum")).reset_index()
    found = found.join(places(cells), on="cell")
    is_host_free = found["quantity"] == alone.HOST_FREE
    found["limits"] = _limits(found, series).mask(is_host_free, "gpu")
    found["in_turns"] = found["rounds"] > 0
    index = [*SERIES, *ALIKE]
    logs = ratios.merge(found[index], on=SERIES).set_index(index)["ratio"]
    between = statistics.between_processes(logs, index, ALIKE).reset_index(drop=True)
    # What the host cannot change repeats better, and so does what was measured in turns.
    is_of_gpu = (found["in_turns"] | is_host_free) & (found["limits"] == "gpu")
    margins = np.where(is_of_gpu, verdicts.MARGIN_OF_GPU, verdicts.MARGIN)
    # False discoveries are controlled together in a study on a machine.
    judged = verdicts.judged(between, margins, found["machine"] + "/" + found["study"])
    return found.join(judged).assign(length=found["length"].where(found["length"] > 0))


def of_processes(pairs: DataFrame, samples: DataFrame) -> DataFrame:
    """By SERIES and process: the median over rounds of the logarithm of time of a over time of b,
    and `rounds`.

    A variant's time in a round is the median of its steps. Where there are no turns a process is
    one round.
    """
    steps = where(samples, kind=[*COMPARED], mode=["", "step"], warmup=False)
    steps = steps.assign(quantity=steps["kind"].map(COMPARED))
    turn = ["cell", "variant", "process", "round", *PASS, "quantity"]
    times = steps.groupby(turn, sort=False)["seconds"].median().reset_index()
    of_a = pairs.merge(times.rename(columns={"variant": "a", "seconds": "of_a"}))
    both = of_a.merge(times.rename(columns={"variant": "b", "seconds": "of_b"}))
    both["ratio"] = np.log(both["of_a"] / both["of_b"])
    both["rounds"] = both["round"] > 0
    of_process = both.groupby([*SERIES, "process"], sort=False)
    return of_process.agg(ratio=("ratio", "median"), rounds=("rounds", "sum")).reset_index()


def _limits(found: DataFrame, series: DataFrame) -> Series:
    """What limits each pair: what limits both, `launches` where they limit one, else `unknown`."""
    own = where(series, quantity="time").fillna({"length": 0})
    sides = [found.assign(variant=found[side]) for side in ("a", "b")]
    of_a, of_b = (beside(side, own, alone.STEP, "limits") for side in sides)
    is_one = (of_a == "launches") | (of_b == "launches")
    return of_a.where(of_a == of_b, np.where(is_one, "launches", "unknown"))


def pairs(cells: list[MeasuredCell]) -> DataFrame:
    """cell, a, b: of variants that change one another (a ladder's) each with the one that it comes
    after and with the first; of others (attention's) all."""
    found: list[tuple[str, str, str]] = []
    for cell in cells:
        known = came_after(cell)
        names = list(known)
        after = [(before, name) for name, before in known.items() if before in names]
        of_first = [(names[0], name) for name in names[1:]]
        chosen = after + of_first if after else itertools.combinations(names, 2)
        found += [(cell.name, *pair) for pair in chosen]
    return DataFrame(found, columns=PAIR).drop_duplicates()
