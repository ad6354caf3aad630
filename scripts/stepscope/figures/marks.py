"""What stands in a panel: lines with intervals and names at their ends, crosses where memory ran
out, bars, ticks."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from stepscope.figures import colours
from stepscope.figures.theme import LABEL, text_width
from stepscope.figures.words import number, plain_tick

End = tuple[str, float, float, str]
"""A line's name, the x and y of its end in data units, and its colour."""
Part = tuple[float, str]
"""The width of a part of a bar in data units, and its colour."""
Look = dict[str, Any]
"""How matplotlib draws something: keyword arguments of its methods."""
TICKS = ((1, 1.1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
MOST_TICKS = 7
BAR = 0.7  # of the place of a horizontal bar, its thickness
BASE: Look = {"color": colours.MUTED, "linewidth": 0.8, "zorder": 1}
"""A line at what others are told in."""
DASHED: Look = {"linewidth": 1, "linestyle": (0, (4, 2)), "color": colours.INK}


def log_axis(axis: Axis, low: float, high: float, formatter: Callable = plain_tick) -> None:
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


def ticks_at(axis: Axis, places: Iterable[float], least: float = 0.0) -> None:
    """Ticks of a logarithmic axis at these places alone, from the last one on, `least` of the axis
    apart."""
    places = sorted(set(places))
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


def bar_axis(panel: Axes, names: Sequence[str]) -> None:
    """Names of horizontal bars at 0, 1, 2 …, the first on top; no grid between them."""
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.45, -0.55)
    panel.grid(False, axis="y")
    panel.tick_params(axis="y", length=0)


# Lines


def line(panel: Axes, rows: pd.DataFrame, x: str, colour: str, name: str, **look: Any) -> list[End]:
    """A line through the medians in the order of x, with bars from `low` to `high` where the rows
    have these columns.

    Rows without a number are left out. Returns the line's end, named; no end where there is no row.
    """
    rows = rows.dropna(subset=[x, "median"]).sort_values(x)
    if rows.empty:
        return []
    with_points: Look = {"marker": "o"} | look
    panel.plot(rows[x], rows["median"], color=colour, label=name, **with_points)
    if "low" in rows:
        intervals(panel, rows[x], rows["low"], rows["high"], colour)
    last = rows.iloc[-1]
    return [(name, last[x], last["median"], colour)]


def intervals(
    panel: Axes,
    places: Sequence | pd.Series,
    low: Sequence | pd.Series,
    high: Sequence | pd.Series,
    colour: str,
    horizontal: bool = False,
) -> None:
    """Bars between `low` and `high`, as one path; those without both are left out."""
    points = np.repeat(np.asarray(places, dtype=float), 3)
    ends = np.column_stack([low, high, np.full(len(low), np.nan)]).astype(float).ravel()
    look: Look = {"color": colour, "solid_capstyle": "butt", "label": "_interval"}
    if horizontal:
        panel.plot(ends, points, linewidth=1.1, zorder=3, **look)
    else:
        panel.plot(points, ends, linewidth=3.4, alpha=0.4, zorder=1.9, **look)


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
        if len(there) == 1 and x != right:
            _name_above(panel, there[0])
        else:
            _names_beside(panel, there)


def _name_above(panel: Axes, end: End) -> None:
    name, x, y, colour = end
    look: Look = {"textcoords": "offset points", "ha": "right", "va": "bottom", "fontsize": LABEL}
    panel.annotate(name, (x, y), (1, 3), color=colours.text_of(colour), **look)


def _names_beside(panel: Axes, ends: Sequence[End]) -> None:
    to_axes = panel.transData + panel.transAxes.inverted()
    _, points = _points(panel)
    at = [to_axes.transform((x, y)) for _, x, y, _ in ends]
    heights = spread([y for _, y in at], gap=(LABEL + 2.0) / points)
    for (name, _, _, colour), (x, _), height in zip(ends, at, heights, strict=True):
        look: Look = {"color": colours.text_of(colour), "va": "center", "fontsize": LABEL}
        panel.text(x + 0.03, height, name, transform=panel.transAxes, **look)


@dataclass
class _Group:
    """Neighbours that stand `gap` apart around their centre; members: by their index."""

    centre: float
    members: list[int]


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Moves positions apart until neighbours have at least `gap` between them, each as little as
    possible."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    groups = [_Group(positions[index], [index]) for index in order]
    at = 0
    while at + 1 < len(groups):
        below, above = groups[at], groups[at + 1]
        members = below.members + above.members
        if above.centre - below.centre >= gap * len(members) / 2 - 1e-9:
            at += 1
            continue
        # Too near: one group around their common centre, which may come too near the one below.
        weighted = below.centre * len(below.members) + above.centre * len(above.members)
        groups[at : at + 2] = [_Group(weighted / len(members), members)]
        at = max(at - 1, 0)
    result = list(positions)
    for group in groups:
        for rank, index in enumerate(group.members):
            result[index] = group.centre + gap * (rank - (len(group.members) - 1) / 2)
    return result


def ceiling(panel: Axes, value: float, name: str) -> None:
    """A dashed line across the panel, named above its left end."""
    panel.axhline(value, label=name, **DASHED)
    place = panel.get_yaxis_transform()
    panel.annotate(name, (0.01, value), xycoords=place, va="bottom", fontsize=7)


def out_of_memory(panel: Axes, points: Iterable[tuple[float, str]]) -> None:
    """A hollow cross inside the top edge for each (place, colour) where memory ran out, one below
    another."""
    there: Counter[float] = Counter()
    for place, colour in points:
        look: Look = {
            "marker": "X",
            "markersize": 5.5,
            "markerfacecolor": colours.PAPER,
            "markeredgecolor": colour,
            "color": colour,
            "transform": panel.get_xaxis_transform(),
            "clip_on": False,
        }
        height = 0.95 - 0.08 * there[place]
        panel.plot([place], [height], label="_oom", **look)
        there[place] += 1


def point(panel: Axes, x: float, y: float, colour: str, label: str, **look: Any) -> None:
    """A mark by itself."""
    alone: Look = {"marker": "o", "linestyle": "none"} | look
    panel.plot([x], [y], color=colour, label=label, **alone)


# Bars


def stack(panel: Axes, place: float, parts: Iterable[Part], **look: Any) -> float:
    """A horizontal bar of parts, those without a width left out; where it ends."""
    usual: Look = {"height": BAR, "linewidth": 0}
    left = 0.0
    for width, colour in parts:
        if width > 0:
            panel.barh(place, width, left=left, color=colour, **(usual | look))
            left += width
    return left


def bar(
    panel: Axes,
    place: float,
    parts: Iterable[Part],
    told: str = "",
    interval: tuple[float, float] = (math.nan, math.nan),
    **look: Any,
) -> None:
    """A horizontal bar of parts, and where it is known an interval around its end; right of both
    what is told of it, without which its length."""
    end = stack(panel, place, parts)
    low, high = interval
    if not math.isnan(high):
        intervals(panel, [place], [low], [high], colours.INK, horizontal=True)
    furthest = end if math.isnan(high) else max(end, high)
    beside_bar(panel, furthest, place, told or number(end), **look)


def across_bar(panel: Axes, value: float, place: float, label: str = "_line") -> None:
    """A vertical line across the bar at a place."""
    look: Look = {"color": colours.INK, "linewidth": 1.6, "label": label}
    panel.plot([value] * 2, [place - 0.46, place + 0.46], **look)


def beside_bar(panel: Axes, end: float, place: float, text: str, **look: Any) -> None:
    """Words right of a bar that ends there."""
    usual: Look = {
        "xytext": (4, 0),
        "textcoords": "offset points",
        "va": "center",
        "annotation_clip": False,
        "fontsize": LABEL,
    }
    panel.annotate(text, (end, place), **(usual | look))
