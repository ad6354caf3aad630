"""The timing study's row at the point of a profiled cell: what the cell takes without a profiler."""

import pandas as pd

from stepscope.report.kit.order import way_of

# A cell's mode -> the column of its free steps in the timing table.
FREE = {"inference": "inference", "forward": "free_forward", "forward_backward": "forward_backward", "step": "step"}
_POINT = ("hardware", "size", "context", "precision", "batch", "options")


def mode(row: dict) -> str:
    """The cell's mode as columns name it: `forward_backward`."""
    return str(row.get("mode") or "step").replace("-", "_")


def same_point(timing: pd.DataFrame, row: dict) -> dict:
    """The timing study's row of the same point: the same run if there is one; empty where it was not measured.

    timing: the timing table with its column `options`. What the cell recorded makes no other point of it.
    """
    same, point = timing, {**row, "options": way_of(row["options"])}
    for key in _POINT:
        same = same[same[key] == point[key]] if key in same else same.iloc[:0]
    if same.empty:
        return {}
    free = same.get(f"{FREE.get(mode(row))}_median_ms", pd.Series(index=same.index, dtype=float))
    order = pd.DataFrame({"lost": free.isna(), "mode": same["mode"] != row["mode"]})
    order = order.assign(other=same["repeat"] != row["repeat"], repeat=same["repeat"])
    return same.loc[order.sort_values(list(order), kind="stable").index[0]].to_dict()


def free_step(found: dict, row: dict) -> tuple[float | None, bool]:
    """(median of what the cell profiles, in the free steps of its timing row, in ms; whether that is noisy)."""
    name = FREE.get(mode(row))
    return found.get(f"{name}_median_ms"), bool(found.get(f"{name}_noisy", False))
