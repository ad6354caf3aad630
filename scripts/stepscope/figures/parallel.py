"""Several devices: where the step of each rank goes."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, theme, words
from stepscope.results.tables import Tables

PARTS = {  # what a bar shows: the columns that add up to it
    "computing alone": ("alone",),
    "slowed": ("slowed",),
    "elsewhere": ("apart",),
    "extra kernels": ("extra", "gone", "at_once"),
    "transfer": ("transfer",),
    "waiting": ("waiting",),
    "idle": ("idle",),
}
MOST_ROWS = 24


def most_devices(tables: Tables) -> pd.DataFrame:
    """The ranks of the cell with the most devices."""
    rows = tables.rows("ranks")
    if rows.empty:
        return rows
    chosen = rows.sort_values(["devices", "clock"]).iloc[-1]["cell"]
    return rows[rows["cell"] == chosen].head(MOST_ROWS)


def ranks(tables: Tables) -> Figure | None:
    """A bar a strategy and rank; what is below 0 is taken off computing alone."""
    rows = most_devices(tables)
    if rows.empty:
        return None
    unit, seconds = words.time_unit(rows["clock"].max())
    key = {name: colours.of("rank", name) for name in PARTS}
    subject = "a step of each rank under the profiler"
    figure, axes = theme.panels(1, 1, 1.0 + 0.17 * len(rows), subject, key)
    panel = axes[0, 0]
    for at, row in enumerate(rows.to_dict("records")):
        lengths = {name: sum(row[part] for part in own) for name, own in PARTS.items()}
        lengths["computing alone"] += sum(min(0.0, each) for each in lengths.values())
        shown = [(max(0.0, lengths[name]) / seconds, shade) for name, shade in key.items()]
        end = marks.stack(panel, at, shown)
        marks.beside_bar(panel, end, at, words.number(end), fontsize=7)
    names = [f"{row['variant']}, rank {row['rank']:.0f}" for row in rows.to_dict("records")]
    marks.bar_axis(panel, names)
    panel.set(xlabel=unit, xlim=(0, 1.15 * rows["clock"].max() / seconds))
    return figure
