"""What formats do to numbers: operations forced into one."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope.results.tables import Tables

from . import colours, marks, theme, words

WAYS = {"all in the format": "solid", "under autocast": (0, (3, 2))}
LEAST = 1e-9  # relative error that is drawn for one that is smaller, or 0
MOST_TICKS = 4


def forced(tables: Tables) -> Figure | None:
    """Largest relative error over what is varied, a panel an operation, a line a format; dashed
    under autocast."""
    rows = tables.rows("forced", way=list(WAYS)).dropna(subset=["error", "value"])
    groups = list(rows.groupby(["operation", "quantity"], sort=False))
    if not groups:
        return None

    figure, panels = theme.wrapped(
        len(groups),
        2,
        1.7,
        "relative error of the worst element against float64; dashed under autocast",
        sharey=True,
    )

    for panel, (key, own) in zip(panels, groups, strict=True):
        operation, quantity = map(str, key)
        panel.set(yscale="log", title=operation, xlabel=quantity)
        ends = _errors(panel, own)
        panel.set_ylim(LEAST / 20, 3)
        marks.log_axis(panel.yaxis, 10 * LEAST, 1, words.power_tick)
        marks.label_ends(panel, ends)

    return figure


def _errors(panel: Axes, rows: pd.DataFrame) -> list[marks.End]:
    """A line a format and way over the values, which stand as far apart from each other; the ends
    of those without autocast, whose names serve both."""
    values = sorted(rows["value"].unique())
    shown = rows.assign(
        at=rows["value"].map(values.index),
        median=rows["error"].clip(lower=LEAST),
    )
    ends: list[marks.End] = []

    for key, line in shown.groupby(["way", "format"], sort=False):
        way, name = map(str, key)
        colour = colours.of("precision", name)
        look = {"linestyle": WAYS[way], "markersize": 2.5}
        end = marks.line(panel, line, "at", colour, name, **look)
        if WAYS[way] == "solid":
            ends += end

    every = -(-len(values) // MOST_TICKS)
    ticks = [words.plain_tick(each) for each in values[::every]]
    panel.set_xticks(range(0, len(values), every), ticks)
    return ends
