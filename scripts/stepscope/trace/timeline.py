"""One step, and one attention in it, as lanes of rectangles: at most one for each pixel of a
drawing.

A pixel that many short events share gets one rectangle, as wide as the share of the pixel that they
cover, of the category that covers most: so gaps stay visible, and the drawing stays small however
many events there are.
"""

import numpy as np
import pandas as pd

from .attention import attention_code
from .attribution import Attribution
from .events import SECOND
from .kernel_categories import CATEGORIES
from .nesting import climb, covered

PIXELS = 1200
DEPTHS = 4  # levels of nested ranges that are shown
_FULL = 0.999
_TIMES = ["start", "end"]
_COLUMNS = ["view", "lane", "start", "end", "label", "category"]


def timeline(found: Attribution) -> pd.DataFrame:
    """Rows `view, lane, start, end, label, category`, seconds from the view's start; empty without
    a step.

    Views: `step`, the step of median length, and `one attention`, the attention range in the middle
    of it with what it launched alone, as if the first of that began with it. Lanes, from above:
    ranges of the main thread by depth, CUDA calls by thread, what ranges launched, and streams of
    the devices.
    """
    if found.step_phase is None:
        return pd.DataFrame()
    steps = found.occurrences(found.step_phase)
    by_length = np.argsort(found.lengths[steps.index], kind="stable")
    whole = steps.iloc[by_length[(len(steps) - 1) // 2]]
    parts = [_view(found, whole, None).assign(view="step")]
    ranges = found.trace.ranges
    inside = (ranges["start"] >= whole["start"]) & (ranges["end"] <= whole["end"])
    inside &= (ranges["name"] == attention_code(found)) & (ranges["thread"] == whole["thread"])
    attentions = ranges[inside].sort_values("start")
    if len(attentions):
        middle = attentions.iloc[len(attentions) // 2]
        own = _view(found, middle, _launched(found, middle))
        parts.append(own.assign(view="one attention"))
    return pd.concat(parts, ignore_index=True)[_COLUMNS]


def _launched(found: Attribution, at: pd.Series) -> np.ndarray:
    """Mask of the operations that a range launched."""
    is_within = (found.launch_time >= at["start"]) & (found.launch_time < at["end"])
    return np.asarray(is_within & (found.launch_thread == at["thread"]))


def _view(
    found: Attribution,
    at: pd.Series,
    launched: np.ndarray | None,
) -> pd.DataFrame:
    """The lanes of what happens in a view, in its process or thread. at: the view's range;
    launched: mask of the operations, where they are not all that run in it."""
    trace, end = found.trace, at["end"]
    if end == at["start"]:
        return pd.DataFrame(columns=_COLUMNS)
    operations = trace.operations.assign(category=np.array(CATEGORIES)[found.category])
    if launched is not None:
        operations = operations[launched]
        # They may run long after they were launched.
        late = operations["start"].min() - at["start"]
        operations[_TIMES] -= late
        end = max([end, *operations["end"]])
    edges = np.linspace(0, end - at["start"], PIXELS + 1)

    def of(table: pd.DataFrame, owner: str, until: int = at["end"]) -> pd.DataFrame:
        """By the view's clock, cut at its borders; what the host does at its range's."""
        is_there = (table["start"] < until) & (table["end"] > at["start"])
        own = table[is_there & (table[owner] == at[owner])]
        times = own[_TIMES].clip(at["start"], until) - at["start"]
        own[_TIMES] = times.astype(float)
        return own

    ranges = of(trace.ranges, "thread")
    ranges = ranges[ranges["nested"] & ~found.operator[ranges["name"]]]
    depth = _depths(found, ranges.index.to_numpy(), at)
    lane = [f"ranges {level}" for level in depth]
    ranges = ranges.assign(label=found.named(ranges["name"]), category="range", lane=lane)
    # Ranges are few and long, and what is shorter than a pixel would not be seen.
    is_seen = (ranges["end"] - ranges["start"] >= edges[1]) & (depth >= 0) & (depth < DEPTHS)
    lanes = [ranges[is_seen].sort_values("lane", kind="stable")]
    if not trace.device_is_host:
        by_thread = of(trace.calls, "process").groupby("thread")
        own_first = sorted(by_thread, key=lambda pair: pair[0] != at["thread"])
        for number, (_, own) in enumerate(own_first):
            drawn = _by_pixel(own.assign(category="call"), edges)
            lanes.append(drawn.assign(lane=f"CUDA calls, thread {number}"))
    operations = of(operations, "process", end)
    if launched is not None:
        lanes.append(_on_device(found, at, operations).assign(lane="their work"))
    for (device, stream), own in operations.groupby(["device", "stream"]):
        name = "operators" if trace.device_is_host else f"GPU {device}, stream {stream}"
        lanes.append(_by_pixel(own, edges).assign(lane=name))
    table = pd.concat(lanes, ignore_index=True)
    table[_TIMES] = (table[_TIMES] / SECOND).round(10)
    return table


def _on_device(found: Attribution, at: pd.Series, operations: pd.DataFrame) -> pd.DataFrame:
    """The ranges directly inside one, each from the start of the first operation that it launched
    to the end of the last."""
    is_inside = (found.parent == at.name) & ~found.operator[found.codes]
    own = climb(found.innermost[operations.index], found.parent, ~is_inside)
    times = operations[own >= 0].groupby(own[own >= 0])
    spans = times.agg(start=("start", "min"), end=("end", "max"))
    return spans.assign(label=found.named(found.codes[spans.index]), category="range")


def _depths(found: Attribution, own: np.ndarray, at: pd.Series) -> np.ndarray:
    """How many ranges lie around each, counted from the view's own range; those outside it have a
    negative depth."""
    depth = np.zeros(len(own), dtype=np.int64)
    around = found.parent[own]
    while (around >= 0).any():
        depth += around >= 0
        around = np.where(around >= 0, found.parent[around], -1)
    base = depth[own == at.name]
    return depth - (int(base[0]) if len(base) else 0)


def _by_pixel(own: pd.DataFrame, edges: np.ndarray) -> pd.DataFrame:
    """Rectangles by category, one a pixel; pixels beside each other that one category fills become
    one. edges: borders of the pixels, in nanoseconds from the view's start."""
    cover = pd.DataFrame(
        {
            name: np.diff(covered(part["start"].to_numpy(), part["end"].to_numpy(), edges))
            for name, part in own.groupby("category")
        }
    )
    share = (cover.sum(axis=1) / edges[1]).clip(upper=1)
    is_full = share >= _FULL
    table = pd.DataFrame(
        {
            "start": edges[:-1],
            "end": edges[:-1] + share.mask(is_full, 1) * edges[1],
            "label": "",
            "category": cover.idxmax(axis=1),
        }
    )
    alike = table["category"].where(is_full)
    is_next = alike == alike.shift()
    table, begins = table[share > 1e-3], (~is_next).cumsum()[share > 1e-3]
    return table.groupby(begins).agg(
        {"start": "first", "end": "last", "label": "first", "category": "first"}
    )
