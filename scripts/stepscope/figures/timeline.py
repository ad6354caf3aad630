"""One profiled step: lanes of ranges, CUDA calls and kernels over time; and one attention in it."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from stepscope.results.tables import Tables, where

from . import colours, marks, places, theme, words
from .where import merged

LANE = 0.2  # inches
THICK = 9.5  # points of a rectangle's height
TITLES = {
    "step": "the whole step",
    "one attention": "the attention of one block, and its work as if it began with it",
    "attention": "while the host launches the attention of one block",
}
MOST_LANES = 8


def profiled(tables: Tables) -> pd.DataFrame:
    """The largest plain training step that was profiled, in bf16 where it was."""
    rows = tables.rows("timeline", options="", mode="step")
    return places.main_step(tables, rows).drop_duplicates()


def timeline(tables: Tables) -> Figure | None:
    """Of that step."""
    return _of(profiled(tables), "step")


def one_attention(tables: Tables) -> Figure | None:
    """Of one block in it. What was recorded before it was told apart ends with the host's range."""
    rows = profiled(tables)
    around = where(rows, view="attention")
    last = where(around, category="range", start=0)["end"].max()
    cut = around[around["start"] < last]
    cut = cut.assign(end=cut["end"].clip(upper=last))
    return _of(rows, "one attention") or _of(cut, "attention")


def _of(rows: pd.DataFrame, view: str) -> Figure | None:
    shown = where(rows, view=view)
    if shown.empty:
        return None
    return of_recording(shown, f"{words.place(shown.iloc[0])}; under the profiler")


def of_recording(rows: pd.DataFrame, subject: str) -> Figure | None:
    """A panel a view, lanes from above as they first come.

    rows: an interval each, with view, lane, start and end (seconds), label and category (`range`,
    `call` or a kind of kernels).
    """
    if rows.empty:
        return None

    shown = merged(rows)
    # The whole step comes first.
    views = sorted(shown.groupby("view", sort=False), key=lambda view: view[0] != "step")
    counts = [min(MOST_LANES, own["lane"].nunique()) for _, own in views]

    figure, panels = theme.panels(
        len(views),
        1,
        0.65 + sum(0.55 + LANE * count for count in counts),
        subject,
        colours.key("category", set(shown["category"])),
        gridspec_kw={"height_ratios": counts},
    )

    for panel, (_, own) in zip(panels, views, strict=True):
        _view(panel, own)

    return figure


def _view(panel: Axes, rows: pd.DataFrame) -> None:
    view = rows["view"].iloc[0]
    unit, scale = words.time_unit(rows["end"].max())
    rows = rows.assign(start=rows["start"] / scale, end=rows["end"] / scale)
    panel.set(title=TITLES.get(view, view), xlim=(0, rows["end"].max()), xlabel=unit)
    lanes = list(rows.groupby("lane", sort=False))[:MOST_LANES]

    for at, (_, own) in enumerate(lanes):
        for category, part in own.groupby("category", sort=False):
            if category == "range":
                _ranges(panel, at, part)
                continue
            shade = colours.MUTED if category == "call" else colours.of("category", str(category))
            # Rectangles as one broken thick line: a step of thousands of kernels stays a small
            # file.
            ends = part[["start", "end"]].assign(none=math.nan)
            panel.plot(
                ends.to_numpy().ravel(),
                np.full(ends.size, at),
                color=shade,
                linewidth=THICK,
                solid_capstyle="butt",
                label="_bars",
            )

    marks.bar_axis(panel, [_lane_name(str(lane)) for lane, _ in lanes])
    panel.spines["left"].set_visible(False)


def _ranges(panel: Axes, at: int, rows: pd.DataFrame) -> None:
    """Ranges a hair apart; the name in those that have room for it."""
    span = panel.get_xlim()[1]
    point = span / (72 * (theme.WIDTH - 1.3))  # in data units
    segments = []

    for label, start, end in rows[["label", "start", "end"]].itertuples(index=False):
        segments.append([(start, at), (max(start, end - 0.7 * point), at)])
        for name in (label, words.SHORT.get(label, label)):
            if theme.text_width(name) * point < end - start:
                panel.text(
                    (start + end) / 2,
                    at,
                    name,
                    ha="center",
                    va="center",
                    fontsize=7,
                )
                break

    rectangles = LineCollection(
        segments,
        colors=colours.of("category", "idle"),
        linewidths=THICK,
        capstyle="butt",
    )
    panel.add_collection(rectangles, autolim=False)


def _lane_name(lane: str) -> str:
    """`CUDA calls, thread 0` is `CUDA calls`; `GPU 0, stream 7` is `GPU`; ranges are named by their
    depth's first."""
    name = lane.split(",")[0].removesuffix(" 0")
    return "" if name.startswith("ranges ") else name
