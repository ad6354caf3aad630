"""One step, and one attention in it, as lanes of rectangles: at most one for each pixel of a
drawing.

A pixel that many short events share gets one rectangle, as wide as the share of the pixel that they
cover, of the category that covers most: so gaps stay visible, and the drawing stays small however
many events there are.
"""

import numpy as np
import pandas as pd

from stepscope.trace.attention import attention_code
from stepscope.trace.attribution import Attribution
from stepscope.trace.events import SECOND
from stepscope.trace.kernel_categories import CATEGORIES
from stepscope.trace.nesting import covered

PIXELS = 1200
DEPTHS = 4  # levels of nested ranges that are shown
_FULL = 0.999


def timeline(found: Attribution, pixels: int = PIXELS) -> pd.DataFrame:
    """Rows `view, lane, start, end, label, category`, seconds from the view's start; empty without
    a step.

    Views: `step`, the step of median length, and `attention`, the attention range in the middle of
    it. Lanes, from above: ranges of the main thread by depth, CUDA calls by thread, and streams of
    the devices.
    """
    if found.step_phase is None:
        return pd.DataFrame()
    steps = found.occurrences(found.step_phase)
    by_length = np.argsort((steps["end"] - steps["start"]).to_numpy(), kind="stable")
    whole = steps.iloc[by_length[(len(steps) - 1) // 2]]
    start = int(whole["start"])
    end = int(whole["end"])
    views = [("step", whole, end)]
    ranges = found.trace.ranges
    code = attention_code(found)
    if code is not None:
        own = ranges[(ranges["name"] == code) & (ranges["thread"] == whole["thread"])]
        own = own[(own["start"] >= start) & (own["end"] <= end)].sort_values("start")
        if len(own):
            middle = own.iloc[len(own) // 2]
            views.append(("attention", middle, _last_operation(found, middle)))
    parts = [_view(found, view, at, end, pixels) for view, at, end in views if end > at["start"]]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _last_operation(found: Attribution, at: pd.Series) -> int:
    """When the last operation that a range launched ends, but not before the range does."""
    launched = (
        (found.launch_thread == at["thread"])
        & (found.launch_time >= at["start"])
        & (found.launch_time < at["end"])
    )
    return int(found.trace.operations["end"].to_numpy()[launched].max(initial=at["end"]))


def _view(found: Attribution, view: str, at: pd.Series, end: int, pixels: int) -> pd.DataFrame:
    edges = np.linspace(0, end - at["start"], pixels + 1)
    trace = found.trace
    parts: list[pd.DataFrame] = []

    def of(table: pd.DataFrame, owner: str) -> pd.DataFrame:
        """What of a table happens in the view, in its process or thread."""
        is_there = (table["start"] < end) & (table["end"] > at["start"])
        return table[is_there & (table[owner] == at[owner])]

    ranges = of(trace.ranges, "thread")
    ranges = ranges[ranges["nested"] & ~found.operator[ranges["name"]]]
    depth = _depths(found, ranges.index.to_numpy(), at)
    for level in range(DEPTHS):
        own = ranges[depth == level]
        parts.append(_ranges_lane(f"ranges {level}", own, trace.names, at, edges))
    calls = of(trace.calls, "process") if not trace.device_is_host else trace.calls[:0]
    by_thread = sorted(calls.groupby("thread"), key=lambda pair: pair[0] != at["thread"])
    for number, (_, own) in enumerate(by_thread):
        kinds = np.repeat("call", len(own))
        parts.append(_lane(f"CUDA calls, thread {number}", own, kinds, at, edges))
    operations = of(trace.operations, "process")
    for (device, stream), own in operations.groupby(["device", "stream"]):
        name = "operators" if trace.device_is_host else f"GPU {device}, stream {stream}"
        categories = np.array(CATEGORIES)[found.category[own.index]]
        parts.append(_lane(name, own, categories, at, edges))
    table = pd.concat(parts, ignore_index=True)
    table.insert(0, "view", view)
    return table


def _depths(found: Attribution, own: np.ndarray, at: pd.Series) -> np.ndarray:
    """How many ranges lie around each, counted from the view's own range; those outside it have a
    negative depth."""
    depth = np.zeros(len(own), dtype=np.int64)
    around = found.parent[own].copy()
    while (around >= 0).any():
        depth += around >= 0
        around[around >= 0] = found.parent[around[around >= 0]]
    base = depth[own == at.name]
    return depth - (int(base[0]) if len(base) else 0)


def _ranges_lane(
    lane: str, own: pd.DataFrame, names: list[str], at: pd.Series, edges: np.ndarray
) -> pd.DataFrame:
    """Rectangles with labels: ranges are few and long, and what is shorter than a pixel would not
    be seen."""
    start, end = _within(own, at, edges)
    labels = [names[code] for code in own["name"]]
    found = pd.DataFrame(
        {
            "start": start,
            "end": end,
            "label": labels,
            "category": "range",
        }
    )
    return _in_seconds(lane, found[end - start >= edges[1]])


def _lane(
    lane: str, own: pd.DataFrame, categories: np.ndarray, at: pd.Series, edges: np.ndarray
) -> pd.DataFrame:
    """Rectangles by category.

    at: the view's range; edges: borders of the pixels, in nanoseconds from its start.
    """
    start, end = _within(own, at, edges)
    return _in_seconds(lane, _by_pixel(start, end, categories, edges))


def _within(own: pd.DataFrame, at: pd.Series, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(starts, ends) in nanoseconds from the view's start, cut at its borders."""
    start, end = (
        np.clip((own[key] - at["start"]).to_numpy(dtype=float), 0, edges[-1])
        for key in ("start", "end")
    )
    return start, end


def _in_seconds(lane: str, found: pd.DataFrame) -> pd.DataFrame:
    times = {key: (found[key] / SECOND).round(10) for key in ("start", "end")}
    return found.assign(**times).assign(lane=lane)[["lane", "start", "end", "label", "category"]]


def _by_pixel(
    start: np.ndarray, end: np.ndarray, categories: np.ndarray, edges: np.ndarray
) -> pd.DataFrame:
    """A rectangle a pixel; pixels beside each other that one category fills become one."""
    names = sorted(set(categories))
    pixel = edges[1]
    cover = np.array(
        [
            np.diff(covered(start[own], end[own], edges))
            for own in (categories == name for name in names)
        ]
    )
    share = np.minimum(cover.reshape(len(names), len(edges) - 1).sum(axis=0) / pixel, 1.0)
    at = np.flatnonzero(share > 1e-3)
    best = cover[:, at].argmax(axis=0) if len(at) else at
    full = share[at] >= _FULL
    goes_on = np.append(False, full[1:] & full[:-1] & (np.diff(at) == 1) & (np.diff(best) == 0))[
        : len(at)
    ]
    first = np.flatnonzero(~goes_on)
    last = np.append(first[1:], len(at))[: len(first)] - 1
    ends = edges[at[last]] + np.where(full[last], 1, share[at[last]]) * pixel
    labels = [names[each] for each in best[first]]
    return pd.DataFrame(
        {
            "start": edges[at[first]],
            "end": ends,
            "label": "",
            "category": labels,
        }
    )
