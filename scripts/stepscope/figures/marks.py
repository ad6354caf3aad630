"""What stands in a panel: lines with their intervals and names, crosses where memory ran out, bars, ticks, labels."""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from stepscope import colours
from stepscope.figures.labels import plain_number, short
from stepscope.report.kit.order import ordered, precision_rank

End = tuple[str, float, float, str]
"""Name, x, y (data units) and the text's colour of a line's end."""
OOM_STEP = 0.075
HOLLOW = {"markerfacecolor": colours.PAPER, "linestyle": "none"}  # a mark whose value is doubtful

# Axes -----------------------------------------------------------------------------------------------------------------


def log_axis(axis, low: float, high: float, formatter: Callable = plain_number) -> None:
    """Ticks of a log axis at 1, 3, 10 … or, where it spans less than 1.5 decades, at 1, 2, 5, 10 …"""
    steps = (1.0, 2.0, 5.0) if high < 30 * low else (1.0, 3.0) if high < 1000 * low else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=steps, numticks=20))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(formatter))
    axis.set_minor_formatter(NullFormatter())


def named_ticks(axis, names: dict[float, str]) -> None:
    """Ticks at these places alone: place → its name."""
    axis.set_major_locator(FixedLocator(list(names)))
    axis.set_major_formatter(FixedFormatter(list(names.values())))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def size_ticks(panel: Axes, names: dict[float, str]) -> None:
    """Slanted names of model sizes below a panel: parameters → name."""
    named_ticks(panel.xaxis, names)
    panel.tick_params(axis="x", labelrotation=40)
    for text in panel.get_xticklabels():
        text.set(ha="right", rotation_mode="anchor", fontsize=6.5)


def bar_axis(panel: Axes, places: Iterable[float], names: list[str]) -> None:
    """Names of horizontal bars at their places; no grid between them."""
    panel.set_yticks(places, names)
    panel.grid(False, axis="y")
    panel.tick_params(axis="y", length=0)


def raised(low: float, high: float, room: float) -> tuple[float, float]:
    """Limits of a log axis with so much of its height free above `high`."""
    return low, high * (high / low) ** (room / (1 - room))


# Lines ----------------------------------------------------------------------------------------------------------------


def draw_line(panel: Axes, rows: pd.DataFrame, x: str, y: str, look: dict, interval: tuple[str, str] | None = None):
    """A line over the rows of a frame, and bars between the two columns of its `interval`."""
    panel.plot(rows[x], rows[y], **look)
    if interval:
        draw_intervals(panel, rows[x], rows[interval[0]], rows[interval[1]], look["color"])


def precision_lines(
    panel: Axes, rows: pd.DataFrame, x: str, y: str, interval: tuple[str, str] | None = None
) -> tuple[list[End], list[tuple[float, str]]]:
    """Draws a line for each precision, without what has no `y`; rows that are `apart` stand beside it as diamonds, and
    those that are `doubtful` have hollow marks.

    Returns the lines' ends for `label_lines`, and where rows are `lost`, for `mark_out_of_memory`.
    """
    ends, lost = [], []
    for precision in ordered(rows["precision"], key=precision_rank):
        line = rows[rows["precision"] == precision].sort_values(x)
        look = precision_look(precision)
        lost += [(place, look["color"]) for place in line.loc[line["lost"] == True, x]]  # noqa: E712
        line = line.dropna(subset=[y])
        joined, alone = (line[~line["apart"]], line[line["apart"]]) if "apart" in line else (line, line[:0])
        diamond = look | {"linestyle": "none", "marker": "D", "markersize": 4}
        for rows_alike, own_look in ((joined, look), (alone, diamond)):
            if len(rows_alike):
                draw_line(panel, rows_alike, x, y, own_look, interval)
            doubtful = rows_alike[rows_alike["doubtful"]] if "doubtful" in rows_alike else rows_alike[:0]
            if len(doubtful):
                panel.plot(doubtful[x], doubtful[y], zorder=2.5, **own_look | HOLLOW | {"label": "_doubtful"})
        if len(line):
            text, last = colours.precision_text(precision), (joined if len(joined) else alone).iloc[-1]
            ends.append((short(precision, 10), last[x], last[y], text))
    return ends, lost


def precision_look(precision: str) -> dict:
    """How the line of a precision looks."""
    dashes, colour = colours.DASHES.get(precision, "solid"), colours.precision(precision)
    return {"color": colour, "linestyle": dashes, "marker": "o", "markersize": 3, "label": precision}


def draw_intervals(panel: Axes, x, low, high, colour: str) -> None:
    """Vertical bars from `low` to `high`; one path for all, since thousands would make a large file."""
    places = np.repeat(np.asarray(x, dtype=float), 3)
    ends = np.column_stack([low, high, np.full(len(low), np.nan)]).astype(float).ravel()
    panel.plot(places, ends, color=colour, linewidth=3.2, alpha=0.45, solid_capstyle="butt", zorder=1.9)


def label_lines(panel: Axes, ends: list[End], gap: float = 0.085) -> None:
    """Names at the lines' ends, right of the furthest; the y axis must have its limits."""
    to_axes = panel.transData + panel.transAxes.inverted()
    heights = [to_axes.transform((x, y))[1] for _, x, y, _ in ends]
    right = max((to_axes.transform((x, y))[0] for _, x, y, _ in ends), default=1.0)
    for (name, _, _, colour), height in zip(ends, spread(heights, gap), strict=True):
        text = panel.text(
            right + 0.03, height, name, transform=panel.transAxes, color=colour, va="center", fontsize=7.5
        )
        text.set_in_layout(True)


def label_rows(drawn: list[tuple[Axes, list[End]]], gap: float = 0.085) -> None:
    """Names of the lines of rows of panels that share the x axis, once all have been drawn: right of the last panel of
    a row, and a line that this one does not have in the last panel that does. drawn: row by row, from left to right."""
    rows: dict[int, list[tuple[Axes, list[End]]]] = {}
    for panel, ends in drawn:
        rows.setdefault(panel.get_subplotspec().rowspan.start, []).append((panel, ends))
    for *before, (last, ends) in rows.values():
        label_lines(last, ends, gap)
        others = {end[0]: (panel, end) for panel, own in before for end in own}
        for name in sorted(others.keys() - {end[0] for end in ends}):
            _label_above(*others[name])


def _label_above(panel: Axes, end: End) -> None:
    name, x, y, colour = end
    place = {"xytext": (0, 4), "textcoords": "offset points", "ha": "right", "va": "bottom"}
    panel.annotate(name, (x, y), color=colour, fontsize=7.5, **place)


def label_inside(panel: Axes, ends: list[End], gap: float = 0.085) -> None:
    """`label_lines`, but right of the panel and not above it, where a label would push the rows apart."""
    label_lines(panel, ends, gap)
    top = 1.0 - gap / 2
    own = panel.texts[len(panel.texts) - len(ends) :]
    for text in sorted(own, key=lambda text: -text.get_position()[1]):
        x, y = text.get_position()
        text.set_position((max(x, 1.02), min(y, top)))
        top = min(y, top) - gap


# Out of memory --------------------------------------------------------------------------------------------------------


def mark_out_of_memory(panel: Axes, points: list[tuple[float, str]]) -> None:
    """A hollow cross below the top edge for each (x, colour) that ran out of memory, and one word a place."""
    transform = panel.get_xaxis_transform()
    places: dict[float, list[str]] = {}
    for x, colour in points:
        places.setdefault(x, []).append(colour)
    for x, there in places.items():
        for rank, colour in enumerate(there):
            look = {"marker": "X", "markersize": 5, "markeredgewidth": 1, "markerfacecolor": colours.PAPER}
            height = 0.965 - OOM_STEP * rank
            panel.plot([x], [height], transform=transform, markeredgecolor=colour, clip_on=False, zorder=4, **look)
        height = 0.965 - OOM_STEP * (len(there) - 0.35)
        panel.text(x, height, "OOM", transform=transform, ha="center", va="top", fontsize=6, color=colours.MUTED)


def room_for_out_of_memory(points_at_one_place: int) -> float:
    """The share of a panel's height that `mark_out_of_memory` takes."""
    return 0.13 + OOM_STEP * points_at_one_place if points_at_one_place else 0.0


def room_for_lost(lost: pd.DataFrame, places: list[str]) -> float:
    """The same for rows that ran out of memory; those at one place are alike in these columns."""
    return room_for_out_of_memory(int(lost.groupby(places).size().max()) if len(lost) else 0)


# Bars -----------------------------------------------------------------------------------------------------------------


def stack(panel: Axes, place: float, parts: Iterable[tuple[float, str]], height: float = 0.78) -> list[float]:
    """A horizontal bar of parts, (width, colour) each, those without a width omitted; the left end of each, and the
    bar's end."""
    ends = [0.0]
    for width, colour in parts:
        if width > 0:
            panel.barh(place, width, left=ends[-1], height=height, color=colour, linewidth=0)
        ends.append(ends[-1] + max(width, 0.0))
    return ends


# Labels ---------------------------------------------------------------------------------------------------------------


def spread(positions: list[float], gap: float) -> list[float]:
    """Moves positions (0 to 1) apart until neighbours have at least `gap` between them, each as little as possible."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    groups = [[positions[i], [i]] for i in order]
    at = 0
    while at + 1 < len(groups):
        (centre, members), (following, others) = groups[at], groups[at + 1]
        if following - centre < gap * (len(members) + len(others)) / 2 - 1e-9:
            total = len(members) + len(others)
            groups[at : at + 2] = [[(centre * len(members) + following * len(others)) / total, members + others]]
            at = max(at - 1, 0)
        else:
            at += 1
    result = list(positions)
    for centre, members in groups:
        for rank, i in enumerate(members):
            result[i] = centre + gap * (rank - (len(members) - 1) / 2)
    return result


def beside(middles: list[float], widths: list[float], most_shift: float, end: float) -> list[float] | None:
    """Places of labels in one line, as near to their middles as they can be without touching, all in points.

    None if one would be moved by more than `most_shift`, or end beyond `end`.
    """
    gap = 5.0
    places = list(middles)
    for _ in range(200):
        for at in range(len(places) - 1):
            overlap = (widths[at] + widths[at + 1]) / 2 + gap - (places[at + 1] - places[at])
            if overlap > 0:
                places[at] -= overlap / 2
                places[at + 1] += overlap / 2
    ends = [place + width / 2 for place, width in zip(places, widths, strict=True)]
    far = any(abs(place - middle) > most_shift for place, middle in zip(places, middles, strict=True))
    touching = any(
        b - a < (u + v) / 2 + gap - 0.5 for (a, b), (u, v) in zip(pairwise(places), pairwise(widths), strict=True)
    )
    return None if far or touching or max(ends, default=0) > end else places


@cache
def text_width(text: str, size: float = 6.5) -> float:
    """Width of a label in points."""
    font = FontProperties(family="DejaVu Sans", size=size)
    return float(TextPath((0, 0), text, prop=font).get_extents().x1) if text.strip() else 0.0
