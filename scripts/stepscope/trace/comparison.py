"""Two traces beside each other: which kernels and phases grew, shrank, came and went.

One trace of each says nothing of how much two runs of the same program differ; what changes by less than SAME is not
called a change.
"""

import numpy as np
import pandas as pd

SAME = 0.02
MOST_KERNELS = 200


def compared(before: dict[str, pd.DataFrame], after: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Table name → table, from the tables of two analyses; milliseconds a step, the largest change first."""
    return {
        "compared_phases": _compared(_phases(before), _phases(after)),
        "compared_kernels": _compared(_kernels(before), _kernels(after)).head(MOST_KERNELS),
    }


def _phases(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    table = tables["phases"]
    if table.empty:
        return pd.DataFrame(columns=["name", "category", "ms", "instances"])
    values = {"name": table["phase"], "category": "", "ms": table["gpu_ms_per_step"]}
    return pd.DataFrame(values | {"instances": table["kernels_per_step"]}).set_axis(table["phase"])


def _kernels(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Kernels by their full names; the short one is shown."""
    table = tables["kernels"]
    if table.empty:
        return pd.DataFrame(columns=["name", "category", "ms", "instances"])
    own = table[table["phase"] == "all"]
    instances = own["instances_per_step"].astype(float)
    ms = own["total_ms"].astype(float) * instances / own["instances"].astype(float)
    return pd.DataFrame({"name": own["name"], "category": own["category"], "ms": ms, "instances": instances}).set_axis(
        own["full_name"]
    )


def _compared(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    keys = pd.Index([*before.index, *after.index]).unique()
    old, new = before.reindex(keys), after.reindex(keys)
    first, second = (part["ms"].fillna(0.0).to_numpy(dtype=float) for part in (old, new))
    table = pd.DataFrame(
        {
            "name": old["name"].fillna(new["name"]).to_numpy(),
            "category": old["category"].fillna(new["category"]).to_numpy(),
            "change": [_change(*each) for each in zip(old["ms"], new["ms"], strict=True)],
            "before_ms_per_step": first,
            "after_ms_per_step": second,
            "difference_ms_per_step": second - first,
            "after_over_before": np.divide(second, first, np.full(len(first), np.nan), where=first > 0),
            "before_instances_per_step": old["instances"].to_numpy(),
            "after_instances_per_step": new["instances"].to_numpy(),
        }
    )
    return table.iloc[np.argsort(-np.abs(second - first), kind="stable")].reset_index(drop=True)


def _change(before: float, after: float) -> str:
    """came, went, grew, shrank or same."""
    if np.isnan(before):
        return "came"
    if np.isnan(after):
        return "went"
    if abs(after - before) <= SAME * before:
        return "same"
    return "grew" if after > before else "shrank"
