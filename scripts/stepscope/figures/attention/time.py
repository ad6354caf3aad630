"""Figure: time of one pass over the length, and the square that it grows with."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import theme
from stepscope.figures.attention.data import DIRECTIONS, without_number
from stepscope.figures.attention.growth import by_length, is_leftmost, length_axes
from stepscope.figures.attention.lines import (
    chosen,
    draw_lines,
    guide,
    limits,
    machines_and_precisions,
    note,
    room_for_lost,
    rows_to_draw,
)


def draw_time(tables) -> Figure:
    """Median time over the length, a line an implementation, a column a head dimension, forward above backward."""
    rows = rows_to_draw(tables, "median_ms")
    if rows.empty:
        return theme.empty("No attention cell has been timed: nothing to draw.")
    keys = [key | {"direction": direction} for key in machines_and_precisions(rows) for direction in DIRECTIONS]
    keys = [key for key in keys if len(chosen(rows, **key))]
    return by_length(rows, keys, 1.72, _draw, lambda key: f"{', '.join(key['precisions'])} {key['direction']} (ms)")


def _draw(panel, own: pd.DataFrame, line: pd.DataFrame) -> list[tuple]:
    times = line["median_ms"]
    length_axes(panel, line["length"], limits(times, room_for_lost(line, ["d_head", "length"])), times.max())
    ends = draw_lines(panel, own, "length", "median_ms")
    power, name = (1, "∝ length") if own["tokens"].notna().any() else (2, "∝ length²")  # a fixed batch × length
    guide(panel, power, name, list(line["length"]), [end[1:3] for end in ends], is_leftmost(own, line))
    note(panel, without_number(own, "median_ms"))
    return ends
