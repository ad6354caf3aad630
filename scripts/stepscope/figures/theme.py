"""One look for all figures: fonts, axes, labels at the lines, marks for what ran out of memory, saving."""

import io
import os
import re
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from stepscope.figures import colours

WIDTH = 9.6
PNG_DPI = 160
OOM_STEP = 0.075
# Laid out with matplotlib's own font, the same on every machine; the SVG's text is text, in these fonts if they exist.
SVG_FONTS = "Helvetica Neue,Helvetica,Arial,Liberation Sans,sans-serif"

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.labelcolor": colours.INK,
    "axes.edgecolor": colours.MUTED,
    "axes.facecolor": "none",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": colours.GRID,
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.color": colours.MUTED,
    "ytick.color": colours.MUTED,
    "xtick.labelcolor": colours.INK,
    "ytick.labelcolor": colours.INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "text.color": colours.INK,
    "text.parse_math": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "figure.facecolor": colours.PAPER,
    "savefig.facecolor": colours.PAPER,
    "svg.fonttype": "none",
    "svg.hashsalt": "stepscope",
}


def render(draw: Callable, tables) -> tuple[bytes, bytes]:
    """A figure as (SVG, PNG)."""
    with matplotlib.rc_context(STYLE):
        figure = draw(tables)
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.set_layout_engine("none")  # laid out once, for both
        figure.savefig(png, format="png", dpi=PNG_DPI, metadata={"Software": None})
    text = svg.getvalue().decode("utf-8").replace("'DejaVu Sans'", SVG_FONTS).replace("DejaVu Sans", SVG_FONTS)
    return shorter(text).encode("utf-8"), png.getvalue()


def shorter(svg: str) -> str:
    """Coordinates to a hundredth of a point, a third less to load."""
    return re.sub(r'(?<= )(d|x|y|transform|points)="[^"]*"', lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]), svg)


def write(draw: Callable, tables, folder: Path, name: str) -> None:
    """Writes NAME.svg and NAME.png, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, content in zip(("svg", "png"), render(draw, tables), strict=True):
        beside = folder / f".{name}.{suffix}.{os.getpid()}"
        beside.write_bytes(content)
        beside.replace(folder / f"{name}.{suffix}")


def panels(rows: int, columns: int, height: float, width: float = 2.9, **kwargs) -> tuple[Figure, list[list[Axes]]]:
    """A grid of small multiples, `height` inches a row and at most `width` a column."""
    figure = Figure(figsize=(min(WIDTH, 1.2 + width * columns), height * rows + 0.55), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.05, h_pad=0.05, wspace=0.02, hspace=0.03)
    axes = figure.subplots(rows, columns, squeeze=False, **kwargs)
    return figure, [list(row) for row in axes]


def empty(sentence: str) -> Figure:
    """The figure that says that there is nothing to draw."""
    figure = Figure(figsize=(WIDTH, 0.7))
    figure.text(0.02, 0.5, sentence, va="center", color=colours.MUTED, style="italic", fontsize=9)
    return figure


def short(text: str, most: int = 34) -> str:
    """A name cut to what an axis can hold."""
    text = " ".join(str(text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def plain_number(value: float, _position=None) -> str:
    """Tick label: 0.1, 30, 1,000."""
    return f"{value:,.0f}" if value >= 10 else f"{value:,.4g}"


def parameter_number(value: float, _position=None) -> str:
    """Parameter count as a tick label: 129M, 2B."""
    for unit, scale in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def log_axis(axis, low: float, high: float, formatter: Callable = plain_number) -> None:
    """Ticks of a log axis at 1, 3, 10 … or, where it spans less than 1.5 decades, at 1, 2, 5, 10 …"""
    steps = (1.0, 2.0, 5.0) if high < 30 * low else (1.0, 3.0) if high < 1000 * low else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=steps, numticks=20))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(formatter))
    axis.set_minor_formatter(NullFormatter())


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


def label_lines(axes: Axes, ends: list[tuple[str, float, float, str]], gap: float = 0.085) -> None:
    """Names at the lines' ends. `ends`: (name, x, y, colour), in data units; the y axis must have its limits."""
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [to_axes.transform((x, y))[1] for _, x, y, _ in ends]
    right = max((to_axes.transform((x, y))[0] for _, x, y, _ in ends), default=1.0)
    for (name, _, _, colour), height in zip(ends, spread(heights, gap), strict=True):
        text = axes.text(right + 0.03, height, name, transform=axes.transAxes, color=colour, va="center", fontsize=7.5)
        text.set_in_layout(True)


def draw_intervals(axes: Axes, x, low, high, colour: str) -> None:
    """Vertical bars from `low` to `high`; one path for all, since thousands would make a large file."""
    places = np.repeat(np.asarray(x, dtype=float), 3)
    ends = np.column_stack([low, high, np.full(len(low), np.nan)]).astype(float).ravel()
    axes.plot(places, ends, color=colour, linewidth=3.2, alpha=0.45, solid_capstyle="butt", zorder=1.9)


def mark_out_of_memory(axes: Axes, points: list[tuple[float, str]]) -> None:
    """A hollow cross below the top edge for each (x, colour) that ran out of memory, and one word a place."""
    transform = axes.get_xaxis_transform()
    places: dict[float, list[str]] = {}
    for x, colour in points:
        places.setdefault(x, []).append(colour)
    for x, there in places.items():
        for rank, colour in enumerate(there):
            look = {"marker": "X", "markersize": 5, "markeredgewidth": 1, "markerfacecolor": colours.PAPER}
            height = 0.965 - OOM_STEP * rank
            axes.plot([x], [height], transform=transform, markeredgecolor=colour, clip_on=False, zorder=4, **look)
        height = 0.965 - OOM_STEP * (len(there) - 0.35)
        axes.text(x, height, "OOM", transform=transform, ha="center", va="top", fontsize=6, color=colours.MUTED)


def room_for_out_of_memory(points_at_one_place: int) -> float:
    """The share of an axes' height that `mark_out_of_memory` takes."""
    return 0.13 + OOM_STEP * points_at_one_place if points_at_one_place else 0.0
