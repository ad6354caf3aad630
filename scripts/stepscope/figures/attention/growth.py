"""Panels of the attention study over the length: a column a head dimension, rows by machine and precision."""

from itertools import groupby

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, theme
from stepscope.figures.attention.data import shape_words
from stepscope.figures.attention.lines import EDGE, MOST_ROWS, chosen, label, log_axes
from stepscope.figures.choosing import apart, pick
from stepscope.figures.profile.data import left_out
from stepscope.report.kit.order import ordered

MOST_COLUMNS = 4


def by_length(rows: pd.DataFrame, keys: list[dict], height: float, draw, name) -> Figure:
    """A row of panels, `height` inches, for each key: a `hardware`, `precisions` and values of other columns.

    draw: draws a panel from (panel, its rows, the rows of its whole row of panels) and returns the lines' ends; name:
    the y axis' words of a key.
    """
    more, keys = len(keys) - MOST_ROWS, keys[:MOST_ROWS]
    machines = [(hardware, list(own)) for hardware, own in groupby(keys, key=lambda key: key["hardware"])]
    columns = {each: pick(ordered(rows.loc[rows["hardware"] == each, "d_head"]), MOST_COLUMNS) for each, _ in machines}
    figure, axes = theme.panels(len(keys), max(map(len, columns.values())), height, sharey="row")
    lines = iter(axes)
    for hardware, own_keys in machines:
        own = [next(lines) for _ in own_keys]
        for key, panels in zip(own_keys, own, strict=True):
            first = _draw_row(panels, chosen(rows, **key), columns[hardware], draw)
            first.set_ylabel(name(key))
            first.tick_params(labelleft=True)
        for column in zip(*own, strict=True):
            drawn = [panel for panel in column if panel.axison]
            for panel in drawn:
                panel.tick_params(labelbottom=panel is drawn[-1])
        head(own[0], [f"d_head {each:,.0f}" for each in columns[hardware]], hardware if len(machines) > 1 else "")
    figure.supxlabel(f"length (tokens, log scale); {shape_words(rows)}{left_out(more)}", fontsize=8)
    return figure


def _draw_row(panels: list, line: pd.DataFrame, dimensions: list[float], draw):
    """Draw a panel for each head dimension that has rows, leave the others empty; the first panel that is drawn."""
    line = line[line["d_head"].isin(dimensions)]
    drawn = []
    for dimension, panel in zip(dimensions, panels, strict=False):
        own = line[line["d_head"] == dimension]
        if len(own):
            drawn.append((panel, draw(panel, own, line)))
    label(*drawn[-1])
    for panel in panels:
        if panel not in [each for each, _ in drawn]:
            panel.set_axis_off()
    return drawn[0][0]


def is_leftmost(own: pd.DataFrame, line: pd.DataFrame) -> bool:
    """Whether a panel's rows are those of the first column."""
    return own["d_head"].min() == line["d_head"].min()


def head(panels: list, names: list[str], above: str, pad: float = 4) -> None:
    """Bold names over a row's panels, `pad` points above them, and over the first one what all of them share."""
    for name, panel in zip(names, panels, strict=False):
        panel.annotate(name, (0, 1), (0, pad), xycoords="axes fraction", textcoords="offset points", fontsize=8,
                       fontweight="bold", va="bottom")  # fmt: skip
    if above:
        panels[0].set_title(theme.short(above, 60), color=colours.MUTED, fontweight="normal", pad=pad + 13)


def length_axes(panel, lengths: pd.Series, height: tuple[float, float], top: float) -> None:
    """Log axes with ticks at those measured lengths that have room; `height` and `top`: as log_axes takes them."""
    ticks = pick(ordered(lengths), 7)
    ticks = [tick for tick, has_room in zip(ticks, apart(ticks, 0.2), strict=True) if has_room]
    log_axes(panel, ticks, height, top)
    panel.set_xlim(min(lengths) / EDGE, max(lengths) * EDGE)
