"""One look for all figures: fonts, lines, axes, and the files that a figure becomes."""

import contextlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib
from fontTools import subset
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from stepscope import colours
from stepscope.figures.svg import shorter
from stepscope.files import write_whole

WIDTH = 9.6
PNG_DPI = 160
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
    "pdf.fonttype": 42,  # TrueType, which publishers take; Type 3 many refuse
    "svg.hashsalt": "stepscope",
}


class PlacedGlyphs(subset.Options):
    """How a font is cut to the glyphs of a PDF, all of which stand in their places already: without what the font knows
    of ligatures, marks and formulas, which takes up to half of the time that the PDF takes.
    """

    def __init__(self, **given):
        super().__init__(**given)
        self.drop_tables += ["GDEF", "GPOS", "GSUB", "MATH"]


@contextlib.contextmanager
def fonts_of_placed_glyphs() -> Iterator[None]:
    """Let matplotlib cut fonts as above, which it has no setting for."""
    usual, subset.Options = subset.Options, PlacedGlyphs
    try:
        yield
    finally:
        subset.Options = usual


def render(draw: Callable, tables) -> dict[str, bytes]:
    """A figure as svg, png and pdf: the same bytes whenever and wherever it is drawn."""
    with matplotlib.rc_context(STYLE):
        figure = draw(tables)
        svg, png, pdf = io.BytesIO(), io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.set_layout_engine("none")  # laid out once, for all
        figure.savefig(png, format="png", dpi=PNG_DPI, metadata={"Software": None})
        with fonts_of_placed_glyphs():
            figure.savefig(pdf, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    text = svg.getvalue().decode("utf-8").replace("'DejaVu Sans'", SVG_FONTS).replace("DejaVu Sans", SVG_FONTS)
    return {"svg": shorter(text).encode("utf-8"), "png": png.getvalue(), "pdf": pdf.getvalue()}


def legend(figure: Figure, handles: list[Artist], ncols: int, loc: str = "outside upper left", **look) -> None:
    """A legend above the panels, in `ncols` columns or as many as the figure is wide enough for."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    edge = matplotlib.rcParams["legend.borderaxespad"] * matplotlib.rcParams["legend.fontsize"] * figure.dpi / 72
    for columns in range(ncols, 0, -1):
        placed = figure.legend(handles=handles, loc=loc, ncols=columns, **look)
        if columns == 1 or placed.get_window_extent(renderer).width <= figure.bbox.width - 2 * edge:
            return
        placed.remove()


def write(draw: Callable, tables, folder: Path, name: str) -> None:
    """Writes NAME.svg, NAME.png and NAME.pdf, all whole or none."""
    write_whole({folder / f"{name}.{suffix}": content for suffix, content in render(draw, tables).items()})


def empty(sentence: str) -> Figure:
    """The figure that says that there is nothing to draw."""
    figure = Figure(figsize=(WIDTH, 0.7))
    figure.text(0.02, 0.5, sentence, va="center", color=colours.MUTED, style="italic", fontsize=9)
    return figure
