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
    key = colours.key("rank", PARTS)
    subject = "a step of each rank under the profiler"

    figure, panel = theme.single(1.0 + 0.17 * len(rows), subject, key)
    # (rows, parts), in units of the axis
    lengths = pd.DataFrame({name: rows[list(own)].sum(axis=1) for name, own in PARTS.items()})
    lengths /= seconds
    lengths["computing alone"] += lengths.clip(upper=0).sum(axis=1)
    names = rows["variant"] + rows["rank"].map(", rank {:.0f}".format)
    marks.keyed_bars(panel, lengths, key, list(names))
    panel.set(xlabel=unit, xlim=(0, 1.15 * rows["clock"].max() / seconds))
    return figure
