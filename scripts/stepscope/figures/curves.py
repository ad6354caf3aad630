"""Lines over a length or context: a panel for each direction or precision, crosses where memory ran
out."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stepscope.results.tables import Tables, where

from . import colours, marks, places, theme

STATISTICS = ["median", "low", "high"]
ACROSS = {"length": "length (positions)", "context": "context (tokens)"}
TICK = 28  # points of a panel's width that a tick's label takes


def in_units(rows: pd.DataFrame, scale: float) -> pd.DataFrame:
    """The rows with their medians and intervals in units of this size."""
    scaled = rows[STATISTICS] / scale
    return rows.assign(**scaled)


def curves(
    rows: pd.DataFrame,
    x: str,
    subject: str,
    unit: str,
    levels: dict[str, float],
) -> Figure:
    """A panel for each `panel` of the rows, in it for each `line` one over x, named at its end.

    rows: with `panel`, `line` and its `colour`, in the order in which these are drawn, `status` and
    `median`; `low` and `high` where they are known. Both axes are logarithmic and the same in all
    panels. unit: the name of the vertical one. levels: name → value, dashed.
    """
    titles = rows["panel"].unique()
    if (rows["status"] == "oom").any():
        subject += "; ✕ where memory ran out"

    figure, panels = theme.wrapped(len(titles), 2, 2.7, subject, sharex=True, sharey=True)
    values = [*rows.filter(STATISTICS).to_numpy().ravel(), *levels.values()]
    limits = (0.8 * np.nanmin(values), 1.4 * np.nanmax(values))
    contexts = np.unique(rows[x])
    named = []

    for panel, title in zip(panels, titles, strict=True):
        own = where(rows, panel=title)
        panel.set(xscale="log", yscale="log", title=title, ylim=limits)
        panel.set_xlim(contexts[0] / 1.12, contexts[-1] * 1.12)
        marks.log_axis(panel.yaxis, *limits)
        ends: list[marks.End] = []
        for name, of_line in own.groupby("line", sort=False):
            ends += marks.line(panel, of_line, x, of_line["colour"].iloc[0], str(name))
        named.append((panel, ends))

        lost = where(own, status="oom")
        panel.scatter(
            lost[x],
            0.95 - 0.08 * lost.groupby(x).cumcount(),  # inside the top edge, one below another
            30,
            marker="X",
            facecolor=colours.PAPER,
            edgecolors=list(lost["colour"]),
            linewidths=1,
            transform=panel.get_xaxis_transform(),
            label="_oom",
        )

        for name, value in levels.items():
            panel.axhline(value, label=name, **marks.DASHED)
            beside = panel.get_yaxis_transform()
            panel.annotate(name, (0.01, value), xycoords=beside, va="bottom", fontsize=7)

    for panel, ends in named:
        marks.ticks_at(panel.xaxis, contexts, int(panel.bbox.width // TICK))
        marks.label_ends(panel, ends)

    figure.supxlabel(ACROSS[x])
    figure.supylabel(unit)
    return figure


def over_context(
    tables: Tables,
    rows: pd.DataFrame,
    subject: str,
    unit: str,
    levels: dict[str, float] | None = None,
) -> Figure:
    """Those of a training step over the context: a panel for each type of numbers in which there is
    a line, a line a size, that of the fewest parameters first."""
    ordered = places.in_order(tables, rows).drop_duplicates([*places.PLACE, "built"], keep="last")
    kinds = places.with_lines(ordered)
    shown = pd.concat([where(ordered, built=each) for each in kinds])
    colour = shown["built"].map(lambda name: colours.of("precision", name))
    shown = shown.assign(panel=shown["built"], line=shown["size"], colour=colour)
    return curves(shown, "context", subject, unit, levels or {})
