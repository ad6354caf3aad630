"""What stands in a panel: lines with intervals and names at their ends, crosses where memory ran
out, bars, ticks."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator
from scipy.optimize import isotonic_regression

from stepscope.figures import colours
from stepscope.figures.theme import LABEL, text_width
from stepscope.figures.words import number, plain_tick

End = tuple[str, float, float, str]
"""A line's name, the x and y of its end in data units, and its colour."""
Part = tuple[float, str]
"""The width of a part of a bar in data units, and its colour."""
TICKS = ((1, 1.1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
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
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    kept: list[float] = []

    for steps in TICKS:
        ticks = [step * 10.0**power for power in powers for step in steps]
        kept = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(kept) <= MOST_TICKS:
            break

    every = -(-len(kept) // MOST_TICKS)
    axis.set_major_locator(FixedLocator(kept[::-every]))
    _plain(axis, formatter)


def ticks_at(axis: Axis, places: Sequence[float], least: float) -> None:
    """Ticks of a logarithmic axis at these rising places alone, from the last one on, at least this
    share of the axis apart."""
    span = np.log(places[-1] / places[0]) or 1.0
    kept = [places[-1]]
    for place in reversed(places[:-1]):
        if np.log(kept[-1] / place) >= least * span:
            kept.append(place)
    axis.set_major_locator(FixedLocator(kept))
    _plain(axis, plain_tick)


def _plain(axis: Axis, formatter: Callable) -> None:
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(formatter))
    axis.set_minor_formatter(NullFormatter())


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
    panel.plot(
        rows[x],
        rows["median"],
        color=colour,
        label=name,
        marker="o",
        **look,
    )
    if "low" in rows:  # upright bars, as one path
        intervals = rows[["low", "high"]].assign(none=math.nan)
        panel.plot(
            np.repeat(rows[x], 3),
            intervals.to_numpy(dtype=float).ravel(),
            color=colour,
            label="_interval",
            linewidth=3.4,
            alpha=0.4,
            zorder=1.9,
            solid_capstyle="butt",
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
    panel.plot(
        [low, high],
        [place, place],
        color=colour,
        label="_interval",
        linewidth=1.1,
        zorder=3,
        solid_capstyle="butt",
    )


def finish(
    drawn: Sequence[tuple[Axes, list[End]]], places: Iterable[float], limits: tuple[float, float]
) -> None:
    """Ticks, limits and names of lines of panels that share both logarithmic axes, once all lines
    have been drawn."""
    places = sorted(set(places))
    widest = max(text_width(plain_tick(place)) for place in places)

    for panel, _ in drawn:
        panel.set_ylim(limits)
        width, _ = _points(panel)
        ticks_at(panel.xaxis, places, widest * 1.2 / width)
        panel.set_xlim(places[0] / 1.12, places[-1] * 1.12)
        log_axis(panel.yaxis, *limits)

    for panel, ends in drawn:
        label_ends(panel, ends)


def _points(panel: Axes) -> tuple[float, float]:
    """Width and height of a panel that has been laid out."""
    box, figure = panel.get_window_extent(), panel.figure
    assert figure is not None, "a panel is made by a figure"
    return 72 * box.width / figure.dpi, 72 * box.height / figure.dpi


def label_ends(panel: Axes, ends: Sequence[End]) -> None:
    """Names right of the lines' ends, moved apart; above its end that of the only line that ends
    there before others.

    The axes must have their scales and limits.
    """
    right = max((x for _, x, _, _ in ends), default=1.0)
    for x in sorted({each[1] for each in ends}):
        there = [each for each in ends if each[1] == x]
        if len(there) > 1 or x == right:
            names_beside(panel, there)
            continue
        name, _, y, colour = there[0]
        panel.annotate(
            name,
            (x, y),
            (1, 3),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color=colours.text_of(colour),
            fontsize=LABEL,
        )


def names_beside(panel: Axes, ends: Sequence[End]) -> None:
    """Names right of ends at one x, moved apart."""
    to_axes = panel.transData + panel.transAxes.inverted()
    _, points = _points(panel)
    at = [to_axes.transform((x, y)) for _, x, y, _ in ends]
    heights = spread([y for _, y in at], gap=(LABEL + 2.0) / points)

    for (name, _, _, colour), (x, _), height in zip(ends, at, heights, strict=True):
        panel.text(
            x + 0.03,
            height,
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


def ceiling(panel: Axes, value: float, name: str) -> None:
    """A dashed line across the panel, named above its left end."""
    panel.axhline(value, label=name, **DASHED)
    place = panel.get_yaxis_transform()
    panel.annotate(
        name,
        (0.01, value),
        xycoords=place,
        va="bottom",
        fontsize=7,
    )


def out_of_memory(panel: Axes, points: Iterable[tuple[float, str]]) -> None:
    """A hollow cross inside the top edge for each (place, colour) where memory ran out, one below
    another."""
    there: Counter[float] = Counter()

    for place, colour in points:
        panel.plot(
            [place],
            [0.95 - 0.08 * there[place]],
            transform=panel.get_xaxis_transform(),
            label="_oom",
            marker="X",
            markersize=5.5,
            markerfacecolor=colours.PAPER,
            color=colour,
            clip_on=False,
        )
        there[place] += 1


def point(
    panel: Axes, x: Any, y: Any, colour: str, label: str, marker: str = "o", **look: Any
) -> None:
    """A mark by itself, or several alike."""
    panel.plot(
        x,
        y,
        color=colour,
        label=label,
        marker=marker,
        linestyle="none",
        **look,
    )


def measured(
    panel: Axes, place: float, row: dict, colour: str, label: str, marker: str = "o", **look: Any
) -> None:
    """The mark of a median at a place, and its interval."""
    point(panel, row["median"], place, colour, label, marker, **look)
    interval(panel, place, row["low"], row["high"], colour)


# Bars


def stack(
    panel: Axes, place: float, parts: Iterable[Part], height: float = BAR, **look: Any
) -> float:
    """A horizontal bar of parts, those without a width left out; where it ends."""
    left = 0.0
    for width, colour in parts:
        if width > 0:
            panel.barh(
                place,
                width,
                height,
                left,
                color=colour,
                linewidth=0,
                **look,
            )
            left += width
    return left


def bar(
    panel: Axes,
    place: float,
    parts: Iterable[Part],
    told: str = "",
    low: float = math.nan,
    high: float = math.nan,
    **look: Any,
) -> None:
    """A horizontal bar of parts, and where it is known an interval around its end; right of both
    what is told of it, without which its length."""
    length = stack(panel, place, parts)
    furthest = length
    if not math.isnan(high):
        interval(panel, place, low, high, colours.INK)
        furthest = max(length, high)
    beside_bar(
        panel,
        furthest,
        place,
        told or number(length),
        **look,
    )


def keyed_bars(
    panel: Axes, widths: pd.DataFrame, key: dict[str, str], names: Sequence[str], **axes: Any
) -> None:
    """A bar with a name for each row, of the parts that the key names, and its length beside it.
    axes: as those of bar_axis."""
    parts = widths.reindex(columns=list(key)).fillna(0.0)
    for place, own in enumerate(parts.to_numpy()):
        bar(panel, place, zip(own, key.values(), strict=True), fontsize=7)
    bar_axis(panel, names, **axes)


def across_bar(
    panel: Axes,
    value: float,
    place: float,
    label: str = "_line",
) -> None:
    """A vertical line across the bar at a place."""
    ends = (place - 0.46, place + 0.46)
    panel.plot(
        (value, value),
        ends,
        color=colours.INK,
        linewidth=1.6,
        label=label,
    )


def beside_bar(
    panel: Axes, end: float, place: float, text: str, fontsize: float = LABEL, **look: Any
) -> None:
    """Words right of a bar that ends there."""
    panel.annotate(
        text,
        (end, place),
        (4, 0),
        textcoords="offset points",
        va="center",
        annotation_clip=False,
        fontsize=fontsize,
        **look,
    )
