"""The first steps of a process: what they are worth as samples, and what the first spends its time
on."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.results.tables import Tables, where

from . import colours, marks, places, theme

MOST_CELLS = 6


def warmed(tables: Tables) -> pd.DataFrame:
    """Means after so many steps of warm-up, of the largest places."""
    rows = tables.rows("warmup", phase="step").dropna(subset=["mean", "steady"])
    ordered = places.in_order(tables, rows)
    cells = ordered["cell"].unique()[-MOST_CELLS:]
    return ordered[ordered["cell"].isin(cells)]


def warmup(tables: Tables) -> Figure | None:
    """Mean of ten steps after so many steps of warm-up over the steady step, with a standard
    deviation on each side; a panel a cell."""
    rows = warmed(tables)
    if rows.empty:
        return None

    cells = rows.drop_duplicates("cell")
    skipped = sorted(rows["skipped"].unique())
    mean, std = (rows[name] / rows["steady"] for name in ("mean", "std"))
    shown = rows.assign(
        at=rows["skipped"].map(skipped.index),
        median=mean,
        low=mean - std,
        high=mean + std,
    )
    subject = "ten steps after so many of warm-up: mean ± standard deviation, over the steady step"
    figure, panels = theme.wrapped(len(cells), 3, 1.6, subject, sharex=True, sharey=True)

    for panel, cell in zip(panels, cells.to_dict("records"), strict=True):
        colour = colours.of("precision", cell["built"])
        panel.axhline(1, **marks.BASE)
        marks.line(panel, where(shown, cell=cell["cell"]), "at", colour, "mean")
        panel.set(title=places.name(cell), xlim=(-0.4, len(skipped) - 0.6))
        panel.set_xticks(range(len(skipped)), [f"{each:.0f}" for each in skipped])

    panels[0].set_ylim(bottom=0)
    figure.supxlabel("steps of warm-up")
    figure.supylabel("times the steady step")
    return figure


def first_step(tables: Tables) -> Figure | None:
    """Two bars a size, the first step and below it a later one, by what the host does."""
    rows = tables.rows("first_step", phase="step").dropna(subset=["context"])
    if rows.empty:
        return None

    cells = places.in_order(tables, rows.drop_duplicates("cell"))
    both = rows.melt(["cell", "part"], ["first", "later"], "step", "time")
    key = colours.key("first step", set(both.loc[both["time"] > 0, "part"]))
    widths = both.assign(ms=1e3 * both["time"]).pivot_table("ms", ["cell", "step"], "part")
    names = []
    for name in places.names(cells):
        names += [name, "a later step"]

    subject = "the first step of a fresh process"
    figure, panel = theme.single(1.15 + 0.19 * len(names), subject, key)
    marks.keyed_bars(panel, widths.reindex(cells["cell"], level="cell"), key, names, xlabel="ms")
    panel.set_xlim(0, 1.15 * panel.dataLim.x1)
    return figure
