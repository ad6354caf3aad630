"""Attention: time and rate over the length, a line an implementation."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.results.tables import Tables

from . import colours, places, words
from .curves import curves, in_units


def subject_rows(tables: Tables, quantity: str) -> pd.DataFrame:
    """Rows of the attention cell with the most lengths: bf16 before other precisions, head
    dimension 64 before others, causal masks before none."""
    rows = tables.rows("series", study="attention", quantity=quantity).dropna(subset="length")

    def rank(own: pd.DataFrame) -> tuple:
        first = own.iloc[0]
        lengths = own.dropna(subset="median")["length"].nunique()
        return (
            lengths,
            first["precision"] == "bf16",
            first["size"] == "d64",
            "causal" in first["options"],
        )

    cells = [own for _, own in rows.groupby("cell")]
    return max(cells, key=rank, default=rows)


def _subject(row: pd.Series) -> str:
    size, batch = row["size"].removeprefix("d"), f"{row['batch']:,.0f}"
    parts = [f"head dimension {size}", row["precision"], f"batch {batch}", row["options"]]
    return ", ".join(filter(None, parts))


def over_length(
    rows: pd.DataFrame, unit: str, scale: float, levels: dict[str, float]
) -> Figure | None:
    """A panel a direction, a line an implementation.

    unit, scale: name of the axis' unit, and its size in SI units. levels: name → value in these
    units, drawn as dashed lines.
    """
    if rows.dropna(subset="median")["length"].nunique() < 2:
        return None

    line = rows["variant"]
    colour = line.map(lambda name: colours.of("attention", name))
    named = rows.assign(panel=rows["direction"], line=line, colour=colour)
    # forward first
    ordered = named.sort_values("direction", ascending=False, kind="stable")
    return curves(in_units(ordered, scale), "length", _subject(rows.iloc[0]), unit, levels)


def attention_time(tables: Tables) -> Figure | None:
    """Time of one call over the length."""
    return over_length(subject_rows(tables, "time"), "ms a call", 1e-3, {})


def attention_rates(tables: Tables) -> Figure | None:
    """FLOP/s over the length, beside the most that a large product in the same precision
    reached."""
    rows = subject_rows(tables, "rate")
    if rows.empty:
        return None
    unit, scale = words.rate_unit(rows["median"].max())
    best = places.best_rates(tables, "matmul")
    precision = rows["precision"].iloc[0]
    levels = {"large product": best[precision] / scale} if precision in best else {}
    return over_length(rows, unit, scale, levels)
