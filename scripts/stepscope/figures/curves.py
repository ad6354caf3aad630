"""Lines over a length or context: a panel for each direction or precision, crosses where memory ran
out."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme
from stepscope.results.tables import Tables

STATISTICS = ["median", "low", "high"]


def in_units(rows: pd.DataFrame, scale: float) -> pd.DataFrame:
    """The rows with their medians and intervals in units of this size."""
    scaled = rows[STATISTICS] / scale
    return rows.assign(**scaled)


def curves(
    rows: pd.DataFrame,
    x: str,
    subject: str,
    *,
    height: float,
    labels: tuple[str, str],
    margins: tuple[float, float],
    levels: dict[str, float] | None = None,
    has_base: bool = False,
) -> Figure:
    """A panel for each `panel` of the rows, in it for each `line` one over x, named at its end.

    rows: with `panel`, `line` and `colour`, in the order in which these are drawn, `status` and
    `median`; `low` and `high` are drawn where they are known. height: inches of a panel. labels:
    of both axes, which are logarithmic and the same in all panels. margins: the ends of the
    vertical one, as shares of the least and the most that is drawn. levels: name → value, dashed.
    has_base: whether a line is drawn at 1.
    """
    levels = levels or {}
    titles = rows["panel"].unique()
    if (rows["status"] == "oom").any():
        subject += "; ✕ where memory ran out"

    figure, panels = theme.wrapped(
        len(titles),
        2,
        height,
        subject,
        sharex=True,
        sharey=True,
    )
    named = []

    for panel, title in zip(panels, titles, strict=True):
        own = rows[rows["panel"] == title]
        panel.set(xscale="log", yscale="log", title=title)
        if has_base:
            panel.axhline(1, **marks.BASE)
        ends: list[marks.End] = []
        for name, of_line in own.groupby("line", sort=False):
            ends += marks.line(
                panel,
                of_line,
                x,
                of_line["colour"].iloc[0],
                str(name),
            )
        lost = own[own["status"] == "oom"]
        marks.out_of_memory(panel, zip(lost[x], lost["colour"], strict=True))
        for name, value in levels.items():
            marks.ceiling(panel, value, name)
        named.append((panel, ends))

    values = rows.filter(STATISTICS)
    drawn = [np.nanmin(values), np.nanmax(values), *levels.values()]
    if has_base:
        drawn.append(1.0)
    marks.finish(named, rows[x], (min(drawn) * margins[0], max(drawn) * margins[1]))
    figure.supxlabel(labels[0])
    figure.supylabel(labels[1])
    return figure


def over_context(
    tables: Tables,
    rows: pd.DataFrame,
    precisions: Iterable[str],
    subject: str,
    unit: str,
    margins: tuple[float, float],
    **more,
) -> Figure:
    """Those of a training step over the context: a panel for each of these precisions, a line a
    size, that of the fewest parameters first.

    unit: the name of the vertical axis. margins, more: see `curves`.
    """
    ordered = places.in_order(tables, rows)
    shown = pd.concat([ordered[ordered["precision"] == each] for each in precisions])
    colour = shown["precision"].map(partial(colours.of, "precision"))
    shown = shown.assign(panel=shown["precision"], line=shown["size"], colour=colour)
    labels = ("context (tokens)", unit)
    return curves(
        shown,
        "context",
        subject,
        labels=labels,
        margins=margins,
        **more,
    )
