"""Two traces beside each other: which phases, categories and kernels grew, shrank, came and went.

One trace of each says nothing of how much two runs of the same program differ; what changes by less
than SAME is not called a change.
"""

import re

import numpy as np
import pandas as pd

SAME = 0.02
MOST_ROWS = 200  # of a kind
# What a vendor's calls begin with: cudaLaunchKernel and cuLaunchKernel, hipLaunchKernel, …
_VENDORS = ("cu", "hip", "ur", "ze", "musa", "acl", "cnrt")
_RUNTIME = re.compile(rf"({'|'.join(_VENDORS)})(da|rt)?[A-Z]")
_RENAMED = ", by another vendor's kernels"
_COLUMNS = ["phase", "name", "category", "full_name", "time", "calls"]


def compared(before: dict[str, pd.DataFrame], after: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each phase, category and kernel of two analyses: GPU seconds a step, the largest
    change first."""
    sides = before, after
    of_phase = {"gpu_time": "time", "kernels": "calls"}
    phases = [
        tables["phases"].rename(columns=of_phase).reindex(columns=_COLUMNS) for tables in sides
    ]
    categories = [_whole(tables["categories"]) for tables in sides]
    kernels = [_whole(tables["kernels"]) for tables in sides]
    _match_names(kernels, _vendors(before).isdisjoint(_vendors(after)))
    parts = [
        _compared("phase", "phase", *phases),
        _compared("category", "category", *categories),
        _compared("kernel", "key", *kernels),
    ]
    return pd.concat(parts, ignore_index=True)


def _whole(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the whole capture."""
    table = table.reindex(columns=_COLUMNS)
    return table[table["phase"] == "all"].copy()


def _match_names(sides: list[pd.DataFrame], are_of_two_vendors: bool) -> None:
    """Give kernels of both sides a `key`: the full name where both have it; of the rest, which two
    profilers may write differently, the short. Where two vendors' runtimes launched them, what is
    left of a category on both sides has one: it has only changed its names."""
    pairs = list(zip(sides, sides[::-1], strict=True))
    for own, other in pairs:
        own["key"] = own["full_name"].where(own["full_name"].isin(other["full_name"]), own["name"])
    if are_of_two_vendors:
        left = [own[~own["key"].isin(other["key"])] for own, other in pairs]
        both = set(left[0]["category"]) & set(left[1]["category"])
        for own, part in zip(sides, left, strict=True):
            renamed = part["category"][part["category"].isin(both)] + _RENAMED
            own.loc[renamed.index, "key"] = own.loc[renamed.index, "name"] = renamed


def _vendors(tables: dict[str, pd.DataFrame]) -> set[str]:
    """Whose runtimes the calls of a trace are of; of any without calls."""
    modules = tables["modules"].reindex(columns=["kind", "module"])
    calls = modules["module"][modules["kind"] == "call"]
    return {found[1] for found in map(_RUNTIME.match, calls) if found} or set(_VENDORS)


def _compared(
    kind: str,
    key: str,
    before: pd.DataFrame,
    after: pd.DataFrame,
) -> pd.DataFrame:
    name = "name" if kind == "kernel" else key
    old, new = (side.groupby(key, sort=False) for side in (before, after))
    names = pd.concat([old[name].first(), new[name].first()])
    names = names[~names.index.duplicated()]
    was, now = (
        side[["time", "calls"]].sum(min_count=1).reindex(names.index) for side in (old, new)
    )
    came, went = was["time"].isna(), now["time"].isna()
    was, now = (side.astype(float).fillna(0) for side in (was, now))
    difference = now["time"] - was["time"]
    is_same = difference.abs() <= SAME * was["time"]
    changes = {"came": came, "went": went, "same": is_same, "grew": difference > 0}
    table = pd.DataFrame(
        {
            "kind": kind,
            "name": names,
            "change": np.select(list(changes.values()), list(changes), "shrank"),
            "before": was["time"],
            "after": now["time"],
            "difference": difference,
            "before_calls": was["calls"],
            "after_calls": now["calls"],
        }
    )
    table = table.sort_values("difference", key=lambda size: -size.abs(), kind="stable")
    return table.head(MOST_ROWS)
