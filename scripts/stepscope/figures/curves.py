"""Lines over a length or context: a panel for each direction or precision, crosses where memory ran
out."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme
from stepscope.results.tables import Tables, where

STATISTICS = ["median", "low", "high"]
ACROSS = {"length": "length (positions)", "context": "context (tokens)"}


def in_units(rows: pd.DataFrame, scale: float) -> pd.DataFrame:
    """The rows with their medians and intervals in units of this size."""
    scaled = rows[STATISTICS] / scale
    return rows.assign(**scaled)


def curves(
    rows: pd.DataFrame,
    x: str,
    subject: str,
    *,
    kind: str,
    unit: str,
    height: float,
    margins: tuple[float, float],
    levels: dict[str, float] | None = None,
    has_base: bool = False,
) -> Figure:
    """A panel for each `panel` of the rows, in it for each `line` one over x, named at its end.

    rows: with `panel`, `line` and what has its colour among things of a `kind` as `of`, in the
    order in which these are drawn, `status` and `median`; `low` and `high` where they are known.
    Both axes are logarithmic and the same in all panels. unit: the name of the vertical one.
    height: inches of a panel. margins: the ends of the vertical axis, as shares of the least and
    the most that is drawn. levels: name → value, dashed. has_base: whether a line is drawn at 1.
    """
    levels = levels or {}
    rows = rows.assign(colour=rows["of"].map(partial(colours.of, kind)))
    titles = rows["panel"].unique()
    if (rows["status"] == "oom").any():
        subject += "; ✕ where memory ran out"

    figure, panels = theme.wrapped(len(titles), 2, height, subject, sharex=True, sharey=True)
    named = []

    for panel, title in zip(panels, titles, strict=True):
        own = where(rows, panel=title)
        panel.set(xscale="log", yscale="log", title=title)
        if has_base:
            panel.axhline(1, **marks.BASE)
        ends: list[marks.End] = []
        for name, of_line in own.groupby("line", sort=False):
            colour = of_line["colour"].iloc[0]
            ends += marks.line(panel, of_line, x, colour, str(name))
        lost = where(own, status="oom")
        marks.out_of_memory(panel, zip(lost[x], lost["colour"], strict=True))
        for name, value in levels.items():
            marks.ceiling(panel, value, name)
        named.append((panel, ends))

    values = rows.filter(STATISTICS)
    drawn = [np.nanmin(values), np.nanmax(values), *levels.values()]
    if has_base:
        drawn.append(1.0)
    marks.finish(named, rows[x], (min(drawn) * margins[0], max(drawn) * margins[1]))
    figure.supxlabel(ACROSS[x])
    figure.supylabel(unit)
    return figure


def over_context(
    tables: Tables,
    rows: pd.DataFrame,
    chosen: Callable[[pd.DataFrame], list[str]],
    subject: str,
    **more,
) -> Figure:
    """Those of a training step over the context: a panel for each chosen type of numbers, a line a
    size, that of the fewest parameters first. more: see `curves`."""
    ordered = places.in_order(tables, rows).drop_duplicates([*places.PLACE, "built"], keep="last")
    shown = pd.concat([where(ordered, built=each) for each in chosen(ordered)])
    shown = shown.assign(panel=shown["built"], line=shown["size"], of=shown["built"])
    return curves(shown, "context", subject, kind="precision", **more)
