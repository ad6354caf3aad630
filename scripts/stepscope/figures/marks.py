"""What stands in a panel: lines with intervals and names at their ends, bars, ticks."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from scipy.optimize import isotonic_regression

from . import colours
from .theme import LABEL
from .words import number, plain_tick

End = tuple[str, float, float, str]
"""A line's name, the x and y of its end in data units, and its colour."""
Part = tuple[float, str]
"""The width of a part of a bar in data units, and its colour."""
TICKS = ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
MOST_TICKS = 7
BAR = 0.7  # of the place of a horizontal bar, its thickness
# Looks, which are keyword arguments of matplotlib's methods: of a line at what others are told in,
# and of one that is no series.
BASE: dict[str, Any] = {
    "color": colours.MUTED,
    "linewidth": 0.8,
    "zorder": 1,
}
DASHED: dict[str, Any] = {
    "color": colours.INK,
    "linewidth": 1,
    "linestyle": (0, (4, 2)),
}


def log_axis(
    axis: Axis,
    low: float,
    high: float,
    formatter: Callable = plain_tick,
) -> None:
    """Ticks of a log axis between two values: the finest of these steps that makes at most
    seven."""
    decades = 10.0 ** np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    kept = decades

    for steps in TICKS:
        ticks = np.outer(decades, steps).ravel()
        kept = ticks[(ticks >= low * 0.999) & (ticks <= high * 1.001)]
        if len(kept) <= MOST_TICKS:
            break

    ticks_at(axis, kept, MOST_TICKS, formatter)


def ticks_at(axis: Axis, places: np.ndarray, most: int, formatter: Callable = plain_tick) -> None:
    """Ticks at these places, of too many every second, third …, and no others."""
    axis.set_major_locator(FixedLocator(list(places), nbins=most))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(formatter))


def bar_axis(panel: Axes, names: Sequence[str], **axes: Any) -> None:
    """Names of horizontal bars at 0, 1, 2 …, the first on top; no grid between them. axes: what
    else is set, as `xlabel`."""
    panel.set_yticks(range(len(names)), names)
    panel.set(ylim=(len(names) - 0.45, -0.55), **axes)
    panel.grid(False, axis="y")
    panel.tick_params(axis="y", length=0)


# Lines


def line(
    panel: Axes,
    rows: pd.DataFrame,
    x: str,
    colour: str,
    name: str,
    **look: Any,
) -> list[End]:
    """A line through the medians in the order of x, with bars from `low` to `high` where the rows
    have these columns.

    Rows without a number are left out. Returns the line's end, named; no end where there is no row.
    """
    rows = rows.dropna(subset=[x, "median"]).sort_values(x)
    if rows.empty:
        return []
    panel.plot(rows[x], rows["median"], color=colour, label=name, marker="o", **look)
    if "low" in rows:
        panel.vlines(
            rows[x],
            rows["low"],
            rows["high"],
            color=colour,
            label="_interval",
            linewidth=3.4,
            alpha=0.4,
            zorder=1.9,
        )
    last = rows.iloc[-1]
    return [(name, last[x], last["median"], colour)]


def interval(
    panel: Axes,
    place: float,
    low: float,
    high: float,
    colour: str,
) -> None:
    """A bar that lies between `low` and `high`."""
    panel.hlines(place, low, high, color=colour, label="_interval", linewidth=1.1, zorder=3)


def label_ends(panel: Axes, ends: Sequence[End]) -> None:
    """Names right of the lines' ends, of those that end at one x moved apart.

    The axes must have their scales and limits.
    """
    to_axes = panel.transData + panel.transAxes.inverted()

    for x in {each[1] for each in ends}:
        there = [each for each in ends if each[1] == x]
        at = [to_axes.transform((x, y)) for _, _, y, _ in there]
        heights = spread([y for _, y in at], gap=(LABEL + 2.0) / panel.bbox.height)
        for (name, _, _, colour), y in zip(there, heights, strict=True):
            panel.text(
                at[0][0] + 0.03,
                y,
                name,
                transform=panel.transAxes,
                va="center",
                color=colours.text_of(colour),
                fontsize=LABEL,
            )


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Moves positions apart until neighbours have at least `gap` between them, each as little as
    possible: by least squares."""
    order = np.argsort(positions)
    # With the gaps taken out, what may not come nearer is what may not fall.
    gaps = gap * np.arange(len(order))
    moved = isotonic_regression(np.take(positions, order) - gaps).x + gaps
    return list(moved[np.argsort(order)])


def measured(panel: Axes, place: float, row: dict, colour: str, label: str, **look: Any) -> None:
    """The mark of a median at a place, and its interval."""
    panel.plot(row["median"], place, "o", color=colour, label=label, **look)
    interval(panel, place, row["low"], row["high"], colour)


# Bars


def bar(
    panel: Axes,
    place: float,
    parts: Iterable[Part],
    told: str = "",
    low: float = math.nan,
    high: float = math.nan,
) -> None:
    """A horizontal bar of parts, those without a width left out, and where it is known an interval
    around its end; right of both what is told of it, without which its length."""
    end = 0.0
    for width, colour in parts:
        if width > 0:
            panel.barh(place, width, BAR, end, color=colour, linewidth=0)
            end += width
    if end and not told:
        told = number(end)
    if not math.isnan(high):
        interval(panel, place, low, high, colours.INK)
        end = max(end, high)
    beside_bar(panel, end, place, told, color=colours.INK if end else colours.MUTED)


def keyed_bars(
    panel: Axes, rows: pd.DataFrame, key: dict[str, str], names: Sequence[str], **axes: Any
) -> None:
    """A bar with a name for each row, of the columns that the key names; `told`, `low` and `high`
    as those of bar(). axes: as those of bar_axis()."""
    parts = rows.reindex(columns=list(key)).fillna(0.0).to_numpy()
    about = rows.reindex(columns=["told", "low", "high"]).fillna({"told": ""}).to_numpy()
    for place, (widths, told) in enumerate(zip(parts, about, strict=True)):
        bar(panel, place, zip(widths, key.values(), strict=True), *told)
    bar_axis(panel, names, **axes)


def across_bar(
    panel: Axes,
    value: float,
    place: float,
    label: str = "_line",
) -> None:
    """A vertical line across the bar at a place."""
    panel.vlines(value, place - 0.46, place + 0.46, color=colours.INK, linewidth=1.6, label=label)


def beside_bar(panel: Axes, end: float, place: float, text: str, **look: Any) -> None:
    """Words right of a bar that ends there."""
    panel.annotate(
        text,
        (end, place),
        (4, 0),
        textcoords="offset points",
        va="center",
        annotation_clip=False,
        fontsize=LABEL,
        **look,
    )
