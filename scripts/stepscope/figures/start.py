"""The first steps of a process: what they are worth as samples, and what the first spends its time
on."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme, words
from stepscope.results.tables import Tables

MOST_CELLS = 6


def warmed(tables: Tables) -> pd.DataFrame:
    """Means after so many steps of warm-up, of the largest places."""
    rows = tables.rows("warmup", phase="step").dropna(subset=["mean", "steady"])
    cells = places.in_order(tables, rows.drop_duplicates("cell"))["cell"][-MOST_CELLS:]
    return rows[rows["cell"].isin(cells)]


def warmup(tables: Tables) -> Figure | None:
    """Mean of ten steps after so many steps of warm-up over the steady step, with a standard
    deviation on each side; a panel a cell."""
    rows = warmed(tables)
    if rows.empty:
        return None
    cells = places.in_order(tables, rows.drop_duplicates("cell"))
    skipped = sorted(rows["skipped"].unique())
    subject = "ten steps after so many of warm-up: mean ± standard deviation, over the steady step"
    figure, panels = theme.wrapped(len(cells), 3, 1.6, subject, sharex=True, sharey=True)
    for panel, cell in zip(panels, cells.to_dict("records"), strict=True):
        own = rows[rows["cell"] == cell["cell"]].sort_values("skipped")
        mean, std = own["mean"] / own["steady"], own["std"] / own["steady"]
        at = own["skipped"].map(skipped.index)
        colour = colours.of("precision", cell["precision"])
        panel.axhline(1, color=colours.MUTED, linewidth=0.8, zorder=1)
        panel.plot(at, mean, marker="o", color=colour, label="mean")
        marks.intervals(panel, at, mean - std, mean + std, colour)
        panel.set(title=places.name(cell), xlim=(-0.4, len(skipped) - 0.6))
        panel.set_xticks(range(len(skipped)), [f"{each:.0f}" for each in skipped])
    panels[0].set_ylim(bottom=0)
    figure.supxlabel("steps of warm-up", fontsize=8)
    figure.supylabel("times the steady step", fontsize=8)
    return figure


def first_step(tables: Tables) -> Figure | None:
    """Two bars a size, the first step and below it, paler, a later one, by what the host does."""
    rows = tables.rows("first_step", phase="step").dropna(subset=["context"])
    if rows.empty:
        return None
    cells = places.in_order(tables, rows.drop_duplicates("cell"))
    taken = set(rows.loc[rows[["first", "later"]].max(axis=1) > 0, "part"])
    parts = [part for part in colours.THINGS["first step"] if part in taken]
    key = {part: colours.of("first step", part) for part in parts}
    subject = "the first step of a fresh process; paler, a later step"
    figure, axes = theme.panels(1, 1, 1.15 + 0.34 * len(cells), subject, key)
    panel = axes[0, 0]
    for at, cell in enumerate(cells["cell"]):
        own = 1e3 * rows[rows["cell"] == cell].set_index("part")[["first", "later"]]
        of_first, of_later = (
            [(own[which].get(part, 0.0), shade) for part, shade in key.items()]
            for which in ("first", "later")
        )
        first = marks.stack(panel, at - 0.18, of_first, height=0.36)
        faint = len(panel.patches)
        later = marks.stack(panel, at + 0.2, of_later, height=0.24)
        for patch in panel.patches[faint:]:
            patch.set_alpha(0.5)
        marks.beside_bar(panel, first, at - 0.18, f"{words.number(first)} ms")
        look: marks.Look = {"fontsize": 7, "color": colours.MUTED}
        marks.beside_bar(panel, later, at + 0.2, words.number(later), **look)
    marks.bar_axis(panel, places.names(cells))
    panel.set(xlabel="ms", xlim=(0, 1.15 * panel.dataLim.x1))
    return figure
