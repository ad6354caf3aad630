"""One profiled step: lanes of ranges, CUDA calls and kernels over time, and below an excerpt of one
attention."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme, words
from stepscope.figures.where import merged
from stepscope.results.tables import Tables

LANE = 0.2  # inches
THICK = 9.5  # points of a rectangle's height
TITLES = {
    "step": "the whole step",
    "attention": "around the attention of one block",
    "zoom": "an excerpt",
}
MOST_LANES = 8


def profiled(tables: Tables) -> pd.DataFrame:
    """The largest plain training step that was profiled, in bf16 where it was."""
    rows = tables.rows("timeline", options="", mode="step")
    return places.main_step(tables, rows).drop_duplicates()


def timeline(tables: Tables) -> Figure | None:
    """Of that step."""
    rows = profiled(tables)
    if rows.empty:
        return None
    subject = words.place(rows.iloc[0].to_dict(), precision=True)
    return of_recording(rows, f"{subject}; under the profiler")


def of_recording(rows: pd.DataFrame, subject: str) -> Figure | None:
    """A panel a view, lanes from above as they first come.

    rows: an interval each, with view, lane, start and end (seconds), label and category (`range`,
    `call` or a kind of kernels).
    """
    if rows.empty:
        return None
    shown = merged(rows)
    views = sorted(shown["view"].unique(), key=lambda view: view != "step")  # the whole step first
    lanes = {view: _lanes(shown[shown["view"] == view]) for view in views}
    heights = [LANE * len(own) for own in lanes.values()]
    height = 0.65 + sum(0.55 + own for own in heights)
    key = colours.key("category", set(shown["category"]))
    ratios = {"height_ratios": heights}
    figure, axes = theme.panels(len(views), 1, height, subject, key, gridspec_kw=ratios)
    for panel, view in zip(axes[:, 0], views, strict=True):
        panel.set_title(TITLES.get(view, view))
        _view(panel, shown[shown["view"] == view], lanes[view])
    return figure


def _lanes(rows: pd.DataFrame) -> list[str]:
    return list(rows["lane"].unique()[:MOST_LANES])


def _view(panel: Axes, rows: pd.DataFrame, lanes: list[str]) -> None:
    unit, scale = words.time_unit(rows["end"].max())
    panel.set(xlim=(0, rows["end"].max() / scale), xlabel=unit)
    for at, lane in enumerate(lanes):
        own = rows[rows["lane"] == lane]
        for category, part in own.groupby("category", sort=False):
            starts = part["start"].to_numpy() / scale
            ends = part["end"].to_numpy() / scale
            if category == "range":
                _ranges(panel, at, part["label"], starts, ends)
                continue
            is_call = category == "call"
            shade = colours.MUTED if is_call else colours.of("category", str(category))
            _bars(panel, at, starts, ends, shade)
    marks.bar_axis(panel, [_lane_name(lane) for lane in lanes])
    panel.spines["left"].set_visible(False)


def _bars(panel: Axes, at: int, starts: np.ndarray, ends: np.ndarray, shade: str) -> None:
    """Rectangles of a lane and colour as one broken thick line: a step of thousands of kernels
    stays a small file."""
    x = np.column_stack([starts, ends, np.full(len(starts), np.nan)]).ravel()
    look: marks.Look = {"linewidth": THICK, "solid_capstyle": "butt", "label": "_bars"}
    panel.plot(x, np.full(len(x), at), color=shade, **look)


def _ranges(panel: Axes, at: int, labels: pd.Series, starts: np.ndarray, ends: np.ndarray) -> None:
    """Ranges a hair apart; the name in those that have room for it."""
    span = panel.get_xlim()[1]
    points = span / (72 * (theme.WIDTH - 1.3))  # data units of a point
    apart = np.maximum(ends - 0.7 * points, starts)
    segments = [[(start, at), (end, at)] for start, end in zip(starts, apart, strict=True)]
    pale = colours.OKABE_ITO["pale"].light
    rectangles = LineCollection(segments, colors=pale, linewidths=THICK, capstyle="butt")
    panel.add_collection(rectangles, autolim=False)
    for label, start, end in zip(labels, starts, ends, strict=True):
        if theme.text_width(label) * points < end - start:
            panel.text((start + end) / 2, at, label, ha="center", va="center", fontsize=7)


def _lane_name(lane: str) -> str:
    """`CUDA calls, thread 0` is `CUDA calls`; `GPU 0, stream 7` is `GPU`; ranges are named by their
    depth's first."""
    name = lane.split(",")[0]
    if name.startswith("ranges"):
        return "ranges" if name == "ranges 0" else ""
    return name.removesuffix(" 0")
