"""Two snapshots beside each other: what grew at the peak, by category and by line of code."""

import numpy as np
import pandas as pd

MOST_ROWS = 200
_KEY = ["kind", "device", "category", "name"]


def compared(before: dict[str, pd.DataFrame], after: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each peak, category and line of a device in two analyses: bytes at the peak, the
    largest change first.

    A line is that of Python's which allocated; where it has none, its part of the model.
    """
    both = (
        _bytes(before)
        .to_frame("before")
        .join(_bytes(after).to_frame("after"), how="outer")
        .fillna(0)
    )
    both = both.astype(np.int64)
    both["difference"] = both["after"] - both["before"]
    both = both[(both["before"] > 0) | (both["after"] > 0)].reset_index()
    order = both["kind"].map(
        {
            "peak": 0,
            "category": 1,
            "line": 2,
        }
    )
    both = both.assign(order=order, size=-both["difference"].abs()).sort_values(
        ["order", "size"], kind="stable"
    )
    return both.drop(columns=["order", "size"]).groupby("kind", sort=False).head(MOST_ROWS)


def _bytes(tables: dict[str, pd.DataFrame]) -> pd.Series:
    """Bytes at the peak by kind, device, category and name."""
    parts = [pd.DataFrame(columns=[*_KEY, "bytes"])]
    if len(tables["memory_summary"]):
        whole = tables["memory_summary"][["device", "peak"]].rename(columns={"peak": "bytes"})
        parts.append(
            whole.assign(
                kind="peak",
                category="",
                name="",
            )
        )
        parts.append(tables["memory_peak"].assign(kind="category", name=""))
        lines = tables["memory_lines"]
        parts.append(
            lines.assign(
                kind="line", name=lines["frame"].where(lines["frame"] != "", lines["module"])
            )
        )
    return pd.concat(parts)[[*_KEY, "bytes"]].groupby(_KEY)["bytes"].sum()
