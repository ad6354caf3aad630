"""What formats do to numbers: sums of many equal addends, and operations forced into a format."""

import numpy as np
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, theme, words
from stepscope.results.tables import Tables

WAYS = {"all in the format": "solid", "under autocast": (0, (3, 2))}
LEAST = 1e-9  # relative error that is drawn for one that is smaller, or 0


def sums(tables: Tables) -> Figure | None:
    """Relative error of each sum, against the sum without rounding of the number that was meant."""
    rows = tables["sums"].dropna(subset=["sum", "exact"])
    if rows.empty:
        return None
    errors = np.maximum((rows["sum"] / rows["exact"] - 1).abs(), LEAST)
    first = rows.iloc[0]
    subject = f"{first['times']:,.0f} addends, {words.number(first['exact'], 4)} exactly"
    figure, axes = theme.panels(1, 1, 0.75 + 0.2 * len(rows), subject)
    panel = axes[0, 0]
    panel.set_xscale("log")
    for at, (row, error) in enumerate(zip(rows.to_dict("records"), errors, strict=True)):
        colour = colours.of("precision", row["sum_dtype"])
        marks.point(panel, error, at, colour, row["variant"], markersize=5)
        marks.beside_bar(panel, error, at, words.number(row["sum"], 7))
    marks.bar_axis(panel, list(rows["variant"]))
    panel.set(xlabel="relative error", xlim=(errors.min() / 3, errors.max() * 30))
    marks.log_axis(panel.xaxis, errors.min() / 3, errors.max(), words.power_tick)
    return figure


def forced(tables: Tables) -> Figure | None:
    """Largest relative error over what is varied, a panel an operation, a line a format; dashed
    under autocast."""
    rows = tables.rows("forced", way=list(WAYS)).dropna(subset=["error", "value"])
    rows = rows[rows["quantity"] != "layer"]
    groups = list(dict.fromkeys(zip(rows["operation"], rows["quantity"], strict=True)))
    if not groups:
        return None
    subject = "relative error of the worst element against float64; dashed under autocast"
    figure, panels = theme.wrapped(len(groups), 2, 1.7, subject, sharey=True)
    drawn = []
    for panel, (operation, quantity) in zip(panels, groups, strict=True):
        own = rows[(rows["operation"] == operation) & (rows["quantity"] == quantity)]
        values = sorted(own["value"].unique())
        ends: list[marks.End] = []
        own = own.assign(at=own["value"].map(values.index), error=own["error"].clip(lower=LEAST))
        panel.set(yscale="log", title=operation, xlabel=quantity)
        for way, dashes in WAYS.items():
            for name in dict.fromkeys(own["format"]):
                line = own[(own["way"] == way) & (own["format"] == name)]
                colour = colours.of("precision", name)
                look: marks.Look = {"linestyle": dashes, "markersize": 2.5}
                end = marks.line(panel, line, "at", colour, name, "error", **look)
                if way == next(iter(WAYS)):  # the other line of a format needs no name
                    ends += end
        every = -(-len(values) // 4)
        ticks = [words.plain_tick(each) for each in values[::every]]
        panel.set_xticks(range(0, len(values), every), ticks)
        drawn.append((panel, ends))
    for panel, ends in drawn:
        panel.set_ylim(LEAST / 20, 3)
        marks.log_axis(panel.yaxis, LEAST, 1, words.power_tick)
        marks.label_ends(panel, ends)
    return figure
