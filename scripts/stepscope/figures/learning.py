"""What variants of a step learn: training loss over the steps."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.results.tables import Tables, where

from . import colours, marks, places, theme, words

SCALED = (0, (3, 2))  # dashes, where a variant without has the same colour


def learned(tables: Tables) -> pd.DataFrame:
    """Variants of the largest place, of the first cell there, in their order."""
    rows = places.largest(tables, tables.rows("learning"))
    return rows[rows["cell"].isin(rows["cell"].head(1))].sort_values("rank")


def curves(tables: Tables) -> Figure | None:
    """A line a variant, the mean of the orders, beside the loss of the bytes' frequencies alone."""
    variants = learned(tables)
    points = tables.rows("curves", cell=list(variants["cell"])).dropna(subset="loss")
    if points.empty:
        return None

    figure, panel = theme.single(3.2, words.place(variants.iloc[0]))
    of_orders = points.groupby(["variant", "step"])["loss"].mean().rename("median").reset_index()
    known = variants["frequencies"].max()
    panel.axhline(known, **marks.DASHED)
    ends: list[marks.End] = [("frequencies alone", points["step"].max(), known, colours.INK)]

    for row in variants.to_dict("records"):
        ends += marks.line(
            panel,
            where(of_orders, variant=row["variant"]),
            "step",
            colours.of("precision", row["own_precision"]),
            row["variant"],
            linestyle=SCALED if row["is_scaled"] else "solid",
            markersize=0,
        )

    panel.set(xlabel="steps", ylabel="training loss (nats a byte)", xlim=(0, points["step"].max()))
    panel.margins(y=0.15)  # room for names below the last loss
    marks.label_ends(panel, ends)
    return figure
