"""What stands in a panel: lines with intervals and names at their ends, crosses where memory ran
out, bars, ticks."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from stepscope.figures import colours
from stepscope.figures.theme import LABEL, text_width
from stepscope.figures.words import plain_tick

End = tuple[str, float, float, str]
"""A line's name, the x and y of its end in data units, and its colour."""
TICKS = ((1, 1.1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
MOST_TICKS = 7
BAR = 0.7  # of the place of a horizontal bar, its thickness


def log_axis(axis, low: float, high: float, formatter: Callable = plain_tick) -> None:
    """Ticks of a log axis between two values: the finest of these steps that makes at most
    seven."""
    for steps in TICKS:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [step * 10.0**power for power in powers for step in steps]
        kept = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(kept) <= MOST_TICKS:
            break
    every = -(-len(kept) // MOST_TICKS)
    axis.set_major_locator(FixedLocator(kept[::-every]))
    _plain(axis, formatter)


def ticks_at(axis, places: Iterable[float], least: float = 0.0) -> None:
    """Ticks of a logarithmic axis at these places alone, from the last one on, `least` of the axis
    apart."""
    places = sorted(set(places))
    span = np.log(places[-1] / places[0]) or 1.0
    kept = [places[-1]]
    for place in reversed(places[:-1]):
        kept += [place] if np.log(kept[-1] / place) >= least * span else []
    axis.set_major_locator(FixedLocator(kept))
    _plain(axis, plain_tick)


def _plain(axis, formatter: Callable) -> None:
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


def line(
    panel: Axes, rows: pd.DataFrame, x: str, colour: str, name: str = "", y: str = "median", **look
) -> list[End]:
    """A line through the rows in the order of x, with bars from `low` to `high` where the rows have
    these columns.

    Rows without a number are left out. Returns the line's end, named; no end where there is no row.
    """
    rows = rows.dropna(subset=[x, y]).sort_values(x)
    if rows.empty:
        return []
    panel.plot(rows[x], rows[y], color=colour, label=name or "_line", **({"marker": "o"} | look))
    if "low" in rows:
        intervals(panel, rows[x], rows["low"], rows["high"], colour)
    last = rows.iloc[-1]
    return [(name, last[x], last[y], colour)]


def span(rows: pd.DataFrame) -> tuple[float, float]:
    """(least, most) of medians and the ends of their intervals."""
    values = rows[["median", "low", "high"]]
    return values.min().min(), values.max().max()


def intervals(panel: Axes, places, low, high, colour: str, horizontal: bool = False) -> None:
    """Bars between `low` and `high`, as one path; those without both are left out."""
    points = np.repeat(np.asarray(places, dtype=float), 3)
    ends = np.column_stack([low, high, np.full(len(low), np.nan)]).astype(float).ravel()
    both = (ends, points) if horizontal else (points, ends)
    look = (
        {"linewidth": 1.1, "zorder": 3}
        if horizontal
        else {"linewidth": 3.4, "alpha": 0.4, "zorder": 1.9}
    )
    panel.plot(*both, color=colour, solid_capstyle="butt", label="_interval", **look)


def finish(
    drawn: Sequence[tuple[Axes, list[End]]], places: Iterable[float], limits: tuple[float, float]
) -> None:
    """Ticks, limits and names of lines of panels that share both logarithmic axes, once all lines
    have been drawn."""
    places = sorted(set(places))
    for panel, _ in drawn:
        panel.set_ylim(limits)
        width = panel.get_window_extent().width * 72 / panel.figure.dpi
        ticks_at(panel.xaxis, places, max(map(text_width, map(plain_tick, places))) * 1.2 / width)
        panel.set_xlim(places[0] / 1.12, places[-1] * 1.12)
        log_axis(panel.yaxis, *limits)
    for panel, ends in drawn:
        label_ends(panel, ends)


def label_ends(panel: Axes, ends: Sequence[End]) -> None:
    """Names right of the lines' ends, moved apart; above its end that of the only line that ends
    there before others.

    The axes must have their scales and limits.
    """
    to_axes = panel.transData + panel.transAxes.inverted()
    gap = (LABEL + 2.0) / (72 * panel.get_window_extent().height / panel.figure.dpi)
    right = max((x for _, x, _, _ in ends), default=1.0)
    for end in sorted({x for _, x, _, _ in ends}):
        there = [(name, y, colour) for name, x, y, colour in ends if x == end]
        if len(there) == 1 and end != right:
            name, y, colour = there[0]
            look = {"textcoords": "offset points", "ha": "right", "va": "bottom", "fontsize": LABEL}
            panel.annotate(name, (end, y), (1, 3), color=colours.text_of(colour), **look)
            continue
        at = [to_axes.transform((end, y)) for _, y, _ in there]
        for (name, _, colour), (x, _), y in zip(
            there, at, spread([y for _, y in at], gap), strict=True
        ):
            look = {"color": colours.text_of(colour), "va": "center", "fontsize": LABEL}
            panel.text(x + 0.03, y, name, transform=panel.transAxes, **look)


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Moves positions apart until neighbours have at least `gap` between them, each as little as
    possible."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    groups = [[positions[i], [i]] for i in order]
    at = 0
    while at + 1 < len(groups):
        (centre, members), (following, others) = groups[at], groups[at + 1]
        together = len(members) + len(others)
        if following - centre < gap * together / 2 - 1e-9:
            groups[at : at + 2] = [
                [(centre * len(members) + following * len(others)) / together, members + others]
            ]
            at = max(at - 1, 0)
        else:
            at += 1
    result = list(positions)
    for centre, members in groups:
        for rank, i in enumerate(members):
            result[i] = centre + gap * (rank - (len(members) - 1) / 2)
    return result


def ceiling(panel: Axes, value: float, name: str) -> None:
    """A dashed line across the panel, named above its left end."""
    panel.axhline(value, color=colours.INK, linewidth=1, linestyle=(0, (4, 2)), label=name)
    panel.annotate(
        name, (0.01, value), xycoords=panel.get_yaxis_transform(), va="bottom", fontsize=7
    )


def out_of_memory(panel: Axes, points: Iterable[tuple[float, str]]) -> None:
    """A hollow cross inside the top edge for each (place, colour) where memory ran out, one below
    another."""
    there: Counter[float] = Counter()
    for place, colour in points:
        look = {
            "marker": "X",
            "markersize": 5.5,
            "markerfacecolor": colours.PAPER,
            "markeredgecolor": colour,
            "color": colour,
        }
        height = 0.95 - 0.08 * there[place]
        panel.plot(
            [place],
            [height],
            transform=panel.get_xaxis_transform(),
            clip_on=False,
            label="_oom",
            **look,
        )
        there[place] += 1


# Bars


def stack(
    panel: Axes,
    place: float,
    parts: Iterable[tuple[float, str]],
    left: float = 0.0,
    height: float = BAR,
) -> float:
    """A horizontal bar of parts, (width, colour) each, those without a width left out; where it
    ends."""
    for width, colour in parts:
        if width > 0:
            panel.barh(place, width, left=left, height=height, color=colour, linewidth=0)
            left += width
    return left


def beside_bar(panel: Axes, end: float, place: float, text: str, **look) -> None:
    """Words right of a bar that ends there."""
    offset = {
        "xytext": (4, 0),
        "textcoords": "offset points",
        "va": "center",
        "annotation_clip": False,
    }
    panel.annotate(text, (end, place), **offset | {"fontsize": LABEL} | look)
