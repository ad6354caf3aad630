"""Two traces beside each other: which phases, categories and kernels grew, shrank, came and went.

One trace of each says nothing of how much two runs of the same program differ; what changes by less
than SAME is not called a change.
"""

import numpy as np
import pandas as pd

from stepscope.recordings import changes

SAME = 0.02
_RENAMED = ", by another vendor's kernels"
# Kind of a row → the table of it, and what its columns are called here.
_KINDS = {
    "phase": ("phases", {"phase": "name", "gpu_time": "time", "kernels": "calls"}),
    "category": ("categories", {"category": "name"}),
    "kernel": ("kernels", {}),
}
_COLUMNS = ["phase", "name", "category", "full_name", "time", "calls"]
_KEY = ["kind", "key"]
_TIMES = ["before", "after", "difference"]
_SHOWN = ["kind", "name", "change", *_TIMES, "before_calls", "after_calls"]


def compared(before: dict[str, pd.DataFrame], after: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each phase, category and kernel of two analyses: GPU seconds a step, the largest
    change first."""
    sides = {"before": _rows(before), "after": _rows(after)}
    _match_names(list(sides.values()), _are_of_two_vendors(before, after))
    table = pd.concat(sides.values()).groupby(_KEY, sort=False)["name"].first().to_frame()
    for side, rows in sides.items():
        sums = rows.groupby(_KEY)[["time", "calls"]].sum(min_count=1)
        table = table.join(sums.set_axis([side, f"{side}_calls"], axis=1))
    came, went = table["before"].isna(), table["after"].isna()
    table = table.fillna(0)
    difference = table["after"] - table["before"]
    is_same = difference.abs() <= SAME * table["before"]
    of_change = {"came": came, "went": went, "same": is_same, "grew": difference > 0}
    table["change"] = np.select(list(of_change.values()), list(of_change), "shrank")
    table["difference"] = difference
    return changes.largest(table.reset_index().reindex(columns=_SHOWN), list(_KINDS))


def _rows(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The phases, and the categories and kernels of the whole capture; what has no full name has
    its name as one."""
    parts = [
        tables[table].rename(columns=called).reindex(columns=_COLUMNS).assign(kind=kind)
        for kind, (table, called) in _KINDS.items()
    ]
    every = pd.concat(parts, ignore_index=True)
    every = every[every["phase"].isna() | (every["phase"] == "all")]
    numbers = {"time": float, "calls": float}
    return every.assign(full_name=every["full_name"].fillna(every["name"])).astype(numbers)


def _match_names(sides: list[pd.DataFrame], are_of_two_vendors: bool) -> None:
    """Give rows of both sides a `key`: the full name where both have it; of the rest, which two
    profilers may write differently, the short. Where two vendors' runtimes launched them, what is
    left of a category on both sides has one: it has only changed its names."""
    pairs = list(zip(sides, sides[::-1], strict=True))
    for own, other in pairs:
        own["key"] = own["full_name"].where(own["full_name"].isin(other["full_name"]), own["name"])
    if are_of_two_vendors:
        left = [
            own[~own["key"].isin(other["key"])].dropna(subset="category") for own, other in pairs
        ]
        both = set(left[0]["category"]) & set(left[1]["category"])
        for own, part in zip(sides, left, strict=True):
            renamed = part["category"][part["category"].isin(both)] + _RENAMED
            own.loc[renamed.index, "key"] = own.loc[renamed.index, "name"] = renamed


def _are_of_two_vendors(*sides: dict[str, pd.DataFrame]) -> bool:
    """Whether the runtimes whose calls both have differ in how those begin: cuda and cu, hip …"""
    one, other = (
        {name[:2] for name in modules["module"][modules["kind"] == "call"]}
        for modules in (each["modules"].reindex(columns=["kind", "module"]) for each in sides)
    )
    return len(one) > 0 < len(other) and one.isdisjoint(other)
