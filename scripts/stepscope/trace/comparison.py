"""Two traces beside each other: which phases, categories and kernels grew, shrank, came and went.

One trace of each says nothing of how much two runs of the same program differ; what changes by less
than SAME is not called a change.
"""

import numpy as np
import pandas as pd

SAME = 0.02
MOST_KERNELS = 200
_KEYS = {
    "phase": ("phases", "phase"),
    "category": ("categories", "category"),
    "kernel": ("kernels", "full_name"),
}


def compared(before: dict[str, pd.DataFrame], after: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each phase, category and kernel of two analyses: GPU seconds a step, the largest
    change first."""
    return pd.concat(
        [_compared(kind, _of(kind, before), _of(kind, after)) for kind in _KEYS], ignore_index=True
    )


def _of(kind: str, tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Rows `name, time, calls` of a kind, by its key; kernels by their full names, of which the
    short one is shown."""
    name, key = _KEYS[kind]
    table = tables[name].rename(
        columns={"gpu_time": "time", "kernels": "calls"} if kind == "phase" else {}
    )
    if table.empty:
        return pd.DataFrame(columns=["name", "time", "calls"])
    table = table if kind == "phase" else table[table["phase"] == "all"]
    table = table if kind == "kernel" else table.assign(name=table[key])
    return table.set_index(key)[["name", "time", "calls"]]


def _compared(kind: str, before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    if kind == "kernel":
        before, after = _by_short_name(before, after), _by_short_name(after, before)
    keys = pd.Index([*before.index, *after.index]).unique()
    old = before.reindex(keys)
    new = after.reindex(keys)
    changes = [change(*each) for each in zip(old["time"], new["time"], strict=True)]
    table = pd.DataFrame(
        {
            "kind": kind,
            "name": old["name"].fillna(new["name"]),
            "change": changes,
        }
    )
    old, new = (each[["time", "calls"]].astype(float).fillna(0) for each in (old, new))
    table = table.assign(
        before=old["time"], after=new["time"], difference=new["time"] - old["time"]
    )
    table = table.assign(before_calls=old["calls"], after_calls=new["calls"])
    return table.sort_values("difference", key=lambda size: -size.abs(), kind="stable").head(
        MOST_KERNELS
    )


def _by_short_name(kernels: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """By full names where both traces have them; the rest, which two profilers may write
    differently, by the short."""
    keys = kernels.index.where(kernels.index.isin(others.index), kernels["name"])
    return kernels.groupby(keys, sort=False).agg(
        {
            "name": "first",
            "time": "sum",
            "calls": "sum",
        }
    )


def change(before: float, after: float) -> str:
    """came, went, grew, shrank or same; nan where there was nothing."""
    if np.isnan(before):
        return "came"
    if np.isnan(after):
        return "went"
    if abs(after - before) <= SAME * before:
        return "same"
    return "grew" if after > before else "shrank"
