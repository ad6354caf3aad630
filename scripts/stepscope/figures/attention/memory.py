"""Figure: what a forward pass leaves allocated for the backward pass, and the peak, over the length."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stepscope.figures import colours, theme
from stepscope.figures.attention.data import series, without_number
from stepscope.figures.attention.growth import by_length, is_leftmost, length_axes
from stepscope.figures.attention.lines import (
    draw_lines,
    guide,
    limits,
    machines_and_precisions,
    note,
    room_for_lost,
    rows_to_draw,
)

MIB = 2.0**20
STEEP = 4.0  # times the least: what is taken to grow with the square
PEAK = {"linestyle": (0, (3, 2)), "linewidth": 0.8, "alpha": 0.6}


def draw_memory(tables) -> Figure:
    """Memory before the backward pass over the length, a line an implementation, its peak lighter."""
    rows = rows_to_draw(tables, "before_backward_bytes")
    rows = rows[rows["direction"] == "backward"]
    if rows.empty:
        return theme.empty("No memory of attention has been counted, as on a CPU: nothing to draw.")
    peak = rows["peak_bytes"].where(rows["status"] == "ok")
    rows = rows.assign(before=rows["before_backward_bytes"] / MIB, peak=peak / MIB)
    figure = by_length(
        rows, machines_and_precisions(rows), 2.3, _draw, lambda key: f"{', '.join(key['precisions'])} memory (MiB)"
    )
    ink = {"color": colours.MUTED}
    handles = [Line2D([], [], marker="o", markersize=3, linewidth=1.1, label="before backward", **ink),
               Line2D([], [], label="peak of forward and backward", **ink, **PEAK)]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper left", ncols=2, columnspacing=1.4)
    return figure


def _draw(panel, own: pd.DataFrame, line: pd.DataFrame) -> list[tuple]:
    sizes = pd.concat([line["before"], line["peak"]])
    length_axes(panel, line["length"], limits(sizes, room_for_lost(line, ["d_head", "length"])), sizes.max())
    for _, implementation, _, each in series(own):
        each = each.dropna(subset=["peak"]).sort_values("length")
        panel.plot(each["length"], each["peak"], color=colours.attention(implementation), **PEAK)
    ends = draw_lines(panel, own, "length", "before", intervals=False)
    least, places = own.groupby("length")["before"].min(), [end[1:3] for end in ends]
    steep = [(x, y) for x, y in places if y > STEEP * least[x]]
    flat, lengths, is_named = (
        [place for place in places if place not in steep],
        list(line["length"]),
        is_leftmost(own, line),
    )
    guide(panel, 1, "∝ length", lengths, flat, is_named)
    guide(panel, 2, "∝ length²", lengths, steep, is_named)
    note(panel, without_number(own, "before"))
    return ends
