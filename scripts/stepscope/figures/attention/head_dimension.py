"""Figure: what the head dimension costs, at one length."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import theme
from stepscope.figures.attention.data import DIRECTIONS, shape_words, without_number
from stepscope.figures.attention.lines import (
    LINE,
    MOST_ROWS,
    chosen,
    draw_lines,
    guide,
    label,
    limits,
    log_axes,
    machines_and_precisions,
    note,
    room_for_lost,
    rows_to_draw,
)
from stepscope.figures.choosing import pick
from stepscope.figures.profile.data import left_out
from stepscope.report.kit.order import ordered


def draw_head_dimension(tables) -> Figure:
    """Median time over the head dimension, a line an implementation, a panel a direction."""
    rows = rows_to_draw(tables, "median_ms")
    if rows.empty:
        return theme.empty("No attention cell has been timed: nothing to draw.")
    keys = machines_and_precisions(rows)
    more, keys = len(keys) - MOST_ROWS // 2, keys[: MOST_ROWS // 2]
    figure, axes = theme.panels(len(keys), 2, 2.15, width=4.2, sharey="row")
    several = rows["hardware"].nunique() > 1
    for key, panels in zip(keys, axes, strict=True):
        own = chosen(rows, **key)
        length = longest_that_most_ran(own)
        own = own[own["length"] == length]
        for direction, panel in zip(DIRECTIONS, panels, strict=True):
            label(panel, _draw(panel, own[own["direction"] == direction], own), gap=0.078)
            title = f"{', '.join(key['precisions'])}, length {length:,.0f}, {direction}"
            panel.set_title(f"{theme.short(key['hardware'], 40)}\n{title}" if several else title)
            panel.tick_params(labelleft=True)
        panels[0].set_ylabel("time (ms)")
    figure.supxlabel(f"d_head (log scale); {shape_words(rows)}{left_out(more)}", fontsize=8)
    return figure


def longest_that_most_ran(rows: pd.DataFrame) -> float:
    """The longest length that more than half of the implementations ran at, forward and backward; else the one that
    the most did. Implementation: by precision."""
    every = rows[["implementation", "precision"]].drop_duplicates()
    ran = rows.dropna(subset=["median_ms"]).groupby(["length", "implementation", "precision"])["direction"].nunique()
    counts = (ran == rows["direction"].nunique()).groupby("length").sum()
    if counts.empty:
        return rows["length"].max()
    most = counts[counts > len(every) / 2]
    return float((most if len(most) else counts[counts == counts.max()]).index.max())


def _draw(panel, own: pd.DataFrame, row: pd.DataFrame) -> list[tuple]:
    ticks, times = pick(ordered(row["d_head"]), 7), row["median_ms"]
    notes = {way: without_number(each, "median_ms", "d_head") for way, each in row.groupby("direction")}
    lost = room_for_lost(row, ["d_head", "direction"])
    room = lost + LINE * max(map(len, notes.values()), default=0)
    log_axes(panel, ticks, limits(times, min(room, 0.6), below=2.8), times.max())
    ends = draw_lines(panel, own, "d_head", "median_ms")
    guide(panel, 1, "∝ d_head", ticks, [end[1:3] for end in ends])
    note(panel, [line for way in own["direction"].unique() for line in notes[way]], lost)
    return ends
