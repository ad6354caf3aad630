"""Two snapshots beside each other: what grew at the peak, by category and by line of code."""

import numpy as np
import pandas as pd

from stepscope.recordings import changes

_KINDS = ["peak", "category", "line"]
_KEY = ["kind", "device", "category", "name"]


def compared(before: dict[str, pd.DataFrame], after: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each peak, category and line of a device in two analyses: bytes at the peak, the
    largest change first.

    A line is that of Python's which allocated; where it has none, its part of the model.
    """
    both = pd.concat({"before": _bytes(before), "after": _bytes(after)}, axis=1)
    both = both.fillna(0).astype(np.int64).sort_index().reset_index()
    both["difference"] = both["after"] - both["before"]
    return changes.largest(both[both[["before", "after"]].max(axis=1) > 0], _KINDS)


def _bytes(tables: dict[str, pd.DataFrame]) -> pd.Series:
    """Bytes at the peak by kind, device, category and name."""
    lines = tables["memory_lines"].reindex(
        columns=["device", "category", "module", "frame", "bytes"]
    )
    named = lines.assign(name=lines["frame"].where(lines["frame"] != "", lines["module"]))
    peaks = tables["memory_summary"].reindex(columns=["device", "peak"])
    by_kind = {
        "peak": peaks.rename(columns={"peak": "bytes"}).assign(category="", name=""),
        "category": tables["memory_peak"].assign(name=""),
        "line": named,
    }
    parts = [table.assign(kind=kind) for kind, table in by_kind.items()]
    return pd.concat(parts).groupby(_KEY)["bytes"].sum()
