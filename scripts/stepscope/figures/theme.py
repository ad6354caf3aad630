"""One look for all figures: fonts, lines, axes, panels, and the SVG that a figure becomes."""

import io
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath

from . import colours
from .svg import shorter

Shown = TypeVar("Shown")  # what a figure is drawn of
LABEL = 7.5  # points of a name at a line
SQUARE = 20  # points of a name's place in a key that are not the name's
KEY_ROW = 11.5 / 72  # inches
WIDTH = 4.8  # inches: 346 points, of which a phone shows each a little larger than a pixel
# Laid out with matplotlib's own font, the same on every machine; the SVG's text is text, in these
# fonts if they exist.
SVG_FONTS = "Helvetica,Arial,sans-serif"
STYLE: dict[Any, Any] = {  # of matplotlib's rcParams
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": colours.INK,
    "figure.labelsize": 8,
    "figure.dpi": 72,  # so that a pixel is a point
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.04,
    "figure.constrained_layout.h_pad": 0.04,
    "figure.constrained_layout.wspace": 0.03,
    "figure.constrained_layout.hspace": 0.03,
    "axes.edgecolor": colours.MUTED,
    "axes.facecolor": "none",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": colours.GRID,
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.color": colours.MUTED,
    "ytick.color": colours.MUTED,
    "xtick.labelcolor": colours.INK,
    "ytick.labelcolor": colours.INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.frameon": False,
    "legend.fontsize": LABEL,
    "legend.title_fontsize": LABEL,
    "legend.borderpad": 0,
    "legend.borderaxespad": 0.3,
    "legend.handlelength": 0.9,
    "legend.handleheight": 0.9,
    "legend.handletextpad": 0.4,
    "legend.labelspacing": 0.4,
    "legend.columnspacing": 1.4,
    "text.color": colours.INK,
    "text.parse_math": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "figure.facecolor": colours.PAPER,
    "svg.fonttype": "none",
    "svg.hashsalt": "stepscope",
}


def render(draw: Callable[[Shown], Figure | None], shown: Shown) -> bytes | None:
    """A figure as SVG, the same bytes whenever and wherever it is drawn; None where there is
    nothing to draw."""
    with matplotlib.rc_context(STYLE):
        figure = draw(shown)
        if figure is None:
            return None
        svg = io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    text = svg.getvalue().decode("utf-8").replace("'DejaVu Sans'", "DejaVu Sans")
    return shorter(text.replace("DejaVu Sans", SVG_FONTS)).encode("utf-8")


def panels(
    rows: int,
    columns: int,
    height: float,
    subject: str,
    key: dict[str, str] | None = None,
    **kwargs,
) -> tuple[Figure, list[Axes]]:
    """A figure of `height` inches, and more for further rows of the key, with panels, row by row,
    and in grey what it is of.

    key: name → colour, of parts that are too small to be named where they are; in rows of words
    below the subject. kwargs: those of matplotlib's `Figure.subplots`.
    """
    colour_of = key or {}
    widest = max(map(text_width, colour_of), default=0.0)
    of_key = int(72 * WIDTH // (widest + SQUARE))
    further = (len(colour_of) - 1) // of_key
    figure = Figure(figsize=(WIDTH, height + max(0, further) * KEY_ROW))
    axes = figure.subplots(rows, columns, squeeze=False, **kwargs)
    squares = [Rectangle((0, 0), 1, 1, color=colour) for colour in colour_of.values()]
    header = figure.legend(
        squares,
        list(colour_of),
        title=subject,
        loc="outside upper left",
        ncols=of_key,
        alignment="left",
    )
    header.get_title().set_color(colours.MUTED)
    return figure, list(axes.flat)


def single(height: float, subject: str, key: dict[str, str] | None = None) -> tuple[Figure, Axes]:
    """A figure of one panel."""
    figure, (panel,) = panels(1, 1, height, subject, key)
    return figure, panel


def wrapped(
    count: int, columns: int, height: float, subject: str, **kwargs
) -> tuple[Figure, list[Axes]]:
    """So many panels, filled row by row, each row of `height` inches; the places left over stay
    empty."""
    columns = 3 if count == 3 else min(columns, count)  # no hole in the second row
    rows = -(-count // columns)
    figure, axes = panels(
        rows,
        columns,
        height * rows + 0.35,
        subject,
        **kwargs,
    )
    for at in range(count, rows * columns):
        axes[at].set_visible(False)
        axes[at - columns].tick_params(labelbottom=True)
    return figure, axes[:count]


@cache
def text_width(text: str) -> float:
    """Width of a label in points."""
    font = FontProperties(family="DejaVu Sans", size=LABEL)
    return float(TextPath((0, 0), text, prop=font).get_extents().x1) if text.strip() else 0.0
