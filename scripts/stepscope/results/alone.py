"""What a step takes when the host is taken out of it, and whether launches limit it: judged here,
once, for all tables, figures and pages."""

import numpy as np
import pandas as pd

from stepscope.axes import MODES
from stepscope.measure.found import LAUNCH_LIMITED

ALONE = "alone_time"
HOST_FREE, BUSY = "host_free_time", "busy_time"
STEP = ["cell", "variant", "mode", "phase", "length", "direction"]
WHOLE = {mode.name: mode.whole for mode in MODES.values()}


def times(found: pd.DataFrame, asides: set[tuple[str, str]]) -> pd.DataFrame:
    """Rows of `alone_time`: of each step the host-free time, else the busy time.

    A cell's variants are compared with each other, so one kind serves all of them where it can: the
    busy time where each rung that ran has one and not each a host-free one.

    found: rows of series.csv, of which `quantity` and those of STEP are read; asides: (cell,
    variant) that stand beside a ladder, whose rungs they do not decide for.
    """
    return _first(found, _cells_by_busy(found, asides)).assign(quantity=ALONE)


def best(found: pd.DataFrame) -> pd.Series:
    """Seconds of each step by itself, by STEP: host-free, else busy. What limits it is judged by
    these, since the profiler's union of kernels leaves out what the GPU needs between them."""
    return _first(found, set()).set_index(STEP)["median"]


def _first(found: pd.DataFrame, prefers_busy: set[str]) -> pd.DataFrame:
    """A row of each step's: its host-free time before its busy time, but in cells of
    prefers_busy."""
    sources = found[found["quantity"].isin([HOST_FREE, BUSY])]
    is_busy = sources["quantity"] == BUSY
    is_second = is_busy != sources["cell"].isin(prefers_busy)
    in_order = sources.assign(is_second=is_second).sort_values("is_second", kind="stable")
    return in_order.drop_duplicates(STEP).sort_index().drop(columns="is_second")


def _cells_by_busy(found: pd.DataFrame, asides: set[tuple[str, str]]) -> set[str]:
    """Cells of which each rung has a busy time, but not each a host-free one."""
    pairs = ["cell", "variant"]
    having = {
        name: set(rows[pairs].itertuples(index=False, name=None))
        for name, rows in found.groupby("quantity")
    }
    rungs = having.get("time", set()) - asides
    without = {
        name: {cell for cell, _ in rungs - having.get(name, set())} for name in (HOST_FREE, BUSY)
    }
    return without[HOST_FREE] - without[BUSY]


def limits(found: pd.DataFrame, device: dict[str, str], study: dict[str, str]) -> pd.Series:
    """What limits each free step, "" for all other rows: its time by the clock beside the one
    alone.

    found: rows of series.csv; device, study: of each cell. A pass of
    attention is queued as a whole before it begins, so that its time is the GPU's.
    """
    is_whole = found["mode"].map(WHOLE).fillna(found["direction"]) == found["phase"]
    studies = found["cell"].map(study)
    free = found[(found["quantity"] == "time") & is_whole & (studies != "ceilings")]
    alone = best(found).reindex(pd.MultiIndex.from_frame(free[STEP])).to_numpy(float)
    is_attention = studies[free.index] == "attention"
    said = np.where(free["median"] > LAUNCH_LIMITED * alone, "launches", "gpu")
    said = np.where(np.isnan(alone), np.where(is_attention, "gpu", "unknown"), said)
    said = np.where(free["cell"].map(device) == "cpu", "cpu", said)
    return pd.Series(said, free.index, dtype=object).reindex(found.index).fillna("")
