"""The first steps of a process: what they are worth as samples, and what the first spends its time
on."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme, words
from stepscope.results.tables import Tables, where

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
    """Two bars a size, the first step and below it, paler, a later one, by what the host does."""
    rows = tables.rows("first_step", phase="step").dropna(subset=["context"])
    if rows.empty:
        return None

    cells = places.in_order(tables, rows.drop_duplicates("cell"))
    taken = rows.loc[rows[["first", "later"]].max(axis=1) > 0, "part"]
    key = colours.key("first step", set(taken))
    subject = "the first step of a fresh process; paler, a later step"

    figure, panel = theme.single(1.15 + 0.34 * len(cells), subject, key)

    for at, cell in enumerate(cells["cell"]):
        own = where(rows, cell=cell).set_index("part")[["first", "later"]]
        widths = 1e3 * own.reindex(list(key)).fillna(0.0)
        of_first, of_later = (zip(widths[which], key.values(), strict=True) for which in widths)
        first = marks.stack(panel, at - 0.18, of_first, height=0.36)
        marks.beside_bar(panel, first, at - 0.18, f"{words.number(first)} ms")
        later = marks.stack(panel, at + 0.2, of_later, height=0.24, alpha=0.5)
        told = words.number(later)
        marks.beside_bar(panel, later, at + 0.2, told, fontsize=7, color=colours.MUTED)

    names = places.names(cells)
    marks.bar_axis(panel, names, xlabel="ms", xlim=(0, 1.15 * panel.dataLim.x1))
    return figure
