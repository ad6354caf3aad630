"""Attention: time and rate over the length, a line an implementation."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, theme, words
from stepscope.results.tables import Tables

DIRECTIONS = ("forward", "backward")


def subject_rows(tables: Tables, quantity: str) -> pd.DataFrame:
    """Rows of the attention cell with the most lengths: bf16 before other precisions, head
    dimension 64 before others, causal masks before none."""
    rows = tables.rows("series", study="attention", quantity=quantity).dropna(subset=["length"])
    if rows.empty:
        return rows

    def rank(cell: str) -> tuple:
        own = rows[rows["cell"] == cell]
        first = own.iloc[0]
        measured = own.dropna(subset=["median"])
        is_usual = (
            first["precision"] == "bf16",
            first["size"] == "d64",
            "causal" in first["options"],
        )
        return measured["length"].nunique() > 1, own["length"].nunique(), is_usual

    best = max(sorted(rows["cell"].unique()), key=rank)
    return rows[rows["cell"] == best]


def _subject(row: dict) -> str:
    parts = [
        f"head dimension {row['size'].removeprefix('d')}",
        row["precision"],
        f"batch {row['batch']:,.0f}",
        row["options"],
    ]
    return ", ".join(part for part in parts if part)


def over_length(
    tables: Tables, quantity: str, unit: str, scale: float, ceilings: dict[str, float] | None = None
) -> Figure | None:
    """A panel a direction, both axes logarithmic, a line an implementation, named at its end.

    unit, scale: name of the axis' unit, and its size in SI units. ceilings: name → value, drawn as
    dashed lines.
    """
    rows = subject_rows(tables, quantity)
    if rows.dropna(subset=["median"])["length"].nunique() < 2:
        return None
    shown = [each for each in DIRECTIONS if each in set(rows["direction"])] or [""]
    subject = words.crossed(_subject(rows.iloc[0].to_dict()), rows)
    figure, panels = theme.wrapped(len(shown), 2, 3.0, subject, sharex=True, sharey=True)
    rows = rows.assign(**{name: rows[name] / scale for name in ("median", "low", "high")})
    named = []
    for panel, direction in zip(panels, shown, strict=True):
        own = rows[rows["direction"] == direction]
        ends: list[marks.End] = []
        lost: list[tuple[float, str]] = []
        panel.set(xscale="log", yscale="log", title=direction)
        for variant in _implementations(own):
            line = own[own["variant"] == variant]
            colour = colours.of("attention", variant)
            ends += marks.line(panel, line, "length", colour, variant)
            lost += [(length, colour) for length in line.loc[line["status"] == "oom", "length"]]
        marks.out_of_memory(panel, lost)
        for name, value in (ceilings or {}).items():
            marks.ceiling(panel, value / scale, name)
        named.append((panel, ends))
    low, high = marks.span(rows)
    drawn = [value / scale for value in (ceilings or {}).values()]
    high = max([high, *drawn])
    marks.finish(named, rows["length"], (low / 1.2, high * 1.5))
    figure.supxlabel("length (positions)", fontsize=8)
    figure.supylabel(unit, fontsize=8)
    return figure


def _implementations(rows: pd.DataFrame) -> list[str]:
    rank = {name: place for place, name in enumerate(colours.THINGS["attention"])}
    return sorted(rows["variant"].unique(), key=lambda name: rank.get(name, len(rank)))


def attention_time(tables: Tables) -> Figure | None:
    """Time of one call over the length."""
    return over_length(tables, "time", "ms a call", 1e-3)


def attention_rates(tables: Tables) -> Figure | None:
    """FLOP/s over the length, beside the most that a large product in the same precision
    reached."""
    rows = subject_rows(tables, "rate")
    if rows.empty:
        return None
    of_products = tables.rows(
        "series", study="ceilings", size="matmul", quantity="rate", variant="burst"
    )
    known = of_products[of_products["precision"] == rows["precision"].iloc[0]]["median"].dropna()
    ceilings = {"large product": known.iloc[0]} if len(known) else {}
    return over_length(tables, "rate", *words.rate_unit(rows["median"].max()), ceilings)
