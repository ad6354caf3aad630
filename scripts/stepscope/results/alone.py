"""What a step takes when the host is taken out of it, and whether launches limit it: judged here,
once, for all tables, figures and pages."""

from collections.abc import Iterable

import numpy as np
from pandas import DataFrame, Series

from stepscope.axes import MODES

from .cells import beside
from .tables import where

ALONE = "alone_time"
HOST_FREE, BUSY = "host_free_time", "busy_time"
LAUNCH_LIMITED = 1.15  # clock over host-free time, or over busy time, from which on launches limit
STEP = ["cell", "variant", "mode", "phase", "length", "direction"]
WHOLE = {name: mode.whole for name, mode in MODES.items()}


def times(found: DataFrame) -> DataFrame:
    """Rows of `alone_time`: of each step the host-free time, else the busy time.

    A cell's variants are compared with each other, so one kind serves all of them where it can: the
    busy time where any has that alone.

    found: rows of series.csv, of which `quantity` and those of STEP are read.
    """
    sources = where(found, quantity=[HOST_FREE, BUSY])
    # Of the two names the busy time's comes first.
    last = sources.groupby(["cell", "variant"])["quantity"].max()
    by_busy = last[last == BUSY].index.get_level_values("cell")
    return best(found, by_busy).assign(quantity=ALONE)


def best(found: DataFrame, prefers_busy: Iterable[str] = ()) -> DataFrame:
    """A row of each step by itself: its host-free time before its busy time, but in cells of
    prefers_busy. What limits a step is judged by the former, since the profiler's union of kernels
    leaves out what the GPU needs between them."""
    sources = where(found, quantity=[HOST_FREE, BUSY])
    is_second = (sources["quantity"] == BUSY) != sources["cell"].isin(list(prefers_busy))
    in_order = sources.loc[is_second.sort_values(kind="stable").index]
    return in_order.drop_duplicates(STEP).sort_index()


def limits(found: DataFrame) -> Series:
    """What limits each free step, "" for all other rows: its time by the clock beside the one
    alone.

    found: rows of series.csv with the `study` and the `device` of their cells. A pass of attention
    is queued as a whole before it begins, so that its time is the GPU's.
    """
    is_whole = found["mode"].map(WHOLE).fillna(found["direction"]) == found["phase"]
    is_free = (found["quantity"] == "time") & is_whole & (found["study"] != "ceilings")
    alone = beside(found, best(found), STEP, "median")
    said = {
        "": ~is_free,
        "cpu": found["device"] == "cpu",
        "launches": found["median"] > LAUNCH_LIMITED * alone,
        "gpu": alone.notna() | (found["study"] == "attention"),
    }
    chosen = np.select(list(said.values()), list(said), "unknown")
    return Series(chosen, found.index, dtype=object)
