"""The ladder: a step after each change."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme, words
from stepscope.figures.curves import in_units
from stepscope.figures.steps import PHASES, phase_parts
from stepscope.results.tables import Tables, where

BROKEN = 1.6  # a bar that is as many times as long as all others is cut
MOST_PLACES = 3
TODAYS = 3  # rungs, at least, of a ladder that page one begins with
VARIANT = ["cell", "variant"]
ABOUT = ["after", "is_aside", "label", "changed"]  # of each variant
STATUS = {"oom": "out of memory"}


def rungs(tables: Tables) -> pd.DataFrame:
    """Whole steps of a ladder's variants, in the order in which they stand there: a row a place and
    variant, with what `variants` says of it.

    `ratio` and `verdict` are those of its comparison with `after`, which is called `after_label`;
    `follows` is True of those that are compared with the rung above.
    """
    about = tables["variants"][[*VARIANT, *ABOUT]]
    rows = places.plain_steps(tables, study="ladder").merge(about, on=VARIANT)
    pairs = tables.rows("comparisons", study="ladder", mode="step", phase="step", quantity="time")
    judged = pairs[["cell", "b", "a", "ratio", "verdict"]]
    judged = judged.set_axis([*VARIANT, "after", "ratio", "verdict"], axis="columns")
    labels = about[[*VARIANT, "label"]].set_axis(["cell", "after", "after_label"], axis="columns")
    rows = rows.merge(judged, how="left").merge(labels, how="left")
    above = rows[~rows["is_aside"]].groupby("cell")["variant"].shift()
    follows = rows["after"] == above.reindex(rows.index)
    return rows.assign(follows=follows, verdict=rows["verdict"].fillna(""))


def climbed(tables: Tables) -> pd.DataFrame:
    """The rungs of places, but for checkpoints: the longest ladder that begins with several changes
    at once, as people run the step, then the largest that begin where the longest of all does."""
    every = rungs(tables)
    steps = every[every["changed"] != "checkpoint"]
    measured = steps.dropna(subset="median")
    if measured.empty:
        return measured

    firsts = steps.groupby("cell")["variant"].first()
    counts = measured["cell"].value_counts()
    begins_alike = firsts == firsts[measured["cell"].mode()[0]]
    is_todays = firsts.str.contains("+", regex=False) & (counts.reindex(firsts.index) >= TODAYS)
    todays = counts[firsts.index[is_todays]].nlargest(1).index
    whole = measured[measured["cell"].isin(firsts.index[begins_alike].difference(todays))]
    cells = [*places.in_order(tables, whole)["cell"].unique(), *todays]
    return pd.concat([steps[steps["cell"] == cell] for cell in cells[: -MOST_PLACES - 1 : -1]])


def ladder(tables: Tables) -> Figure | None:
    """A panel a place, the largest on top; a bar a rung: phases, the step's interval, its ratio to
    the rung before.

    Where launches limit a rung, lines show each step without the host.
    """
    shown = climbed(tables)
    if shown.empty:
        return None

    limited = shown.loc[shown["limits"] == "launches", "cell"]
    alone = where(places.plain_steps(tables, "host_free_time", "ladder"), cell=set(limited))
    alone = alone[[*VARIANT, "median"]].rename(columns={"median": "host_free"})
    shown = shown.merge(alone, on=VARIANT, how="left")
    cells = shown.drop_duplicates("cell")
    counts = shown["cell"].value_counts(sort=False)

    figure, panels = theme.panels(
        len(cells),
        1,
        0.45 + (0.55 + 0.19 * counts).sum(),
        _subject(shown),
        PHASES,
        gridspec_kw={"height_ratios": counts},
    )
    phases = places.plain_steps(tables, study="ladder", phase=list(PHASES))

    for panel, row in zip(panels, cells.to_dict("records"), strict=True):
        _bars(panel, *(where(rows, cell=row["cell"]) for rows in (shown, phases)))
        panel.set_title(words.place(row))

    scales = "" if len(cells) == 1 else "; each panel has its own scale"
    panels[-1].set_xlabel(f"ms a step{scales}")
    return figure


def _subject(shown: pd.DataFrame) -> str:
    told = "× as fast as the row above"
    if shown["verdict"][~shown["follows"]].any():
        told += " or the one in brackets"
    if shown["host_free"].notna().any():
        told += "; vertical line: without the host"
    return told


def _bars(panel: Axes, steps: pd.DataFrame, phases: pd.DataFrame) -> None:
    limit = _limit(steps)

    for at, row in enumerate(in_units(steps, 1e-3).to_dict("records")):
        if not math.isnan(row["host_free"]):
            marks.across_bar(panel, 1e3 * row["host_free"], at)
        step, low, high = row["median"], row["low"], row["high"]
        if math.isnan(step):
            told = STATUS.get(row["status"], row["status"])
            marks.beside_bar(panel, 0, at, told, color=colours.MUTED)
            continue
        parts = _parts(where(phases, variant=row["variant"]), step)
        told = f"{words.measured(step, low, high)} ms{_told(row)}"
        if step > limit:  # the axis ends before the bar does
            marks.bar(panel, at, _up_to(limit, parts), f"cut short: {told}")
            panel.text(
                0.93 * limit,
                at,
                "//",
                color=colours.PAPER,
                fontsize=11,
                va="center",
                ha="center",
                clip_on=True,
            )
        else:
            marks.bar(panel, at, parts, told, low, high)

    labels = [words.short(label, 24) for label in steps["label"]]
    marks.bar_axis(panel, labels, xlim=(0, 1.42 * limit))


def _limit(steps: pd.DataFrame) -> float:
    """Milliseconds up to which bars are drawn: all, or all but the longest."""
    known = steps.dropna(subset="median").sort_values("median")
    *shorter, longest = known["median"]
    is_cut = bool(shorter) and longest > BROKEN * shorter[-1]
    drawn = known[:-1] if is_cut else known
    return 1.05e3 * np.nanmax(drawn[["median", "high"]])


def _parts(phases: pd.DataFrame, step: float) -> list[marks.Part]:
    """(ms, colour) of the phases as shares of the step, in which they overlap."""
    apart = phase_parts(phases)
    whole = sum(width for width, _ in apart)
    if not whole:
        return [(step, colours.of("phase", ""))]
    return [(width * step / whole, colour) for width, colour in apart]


def _up_to(limit: float, parts: list[marks.Part]) -> list[marks.Part]:
    """The parts of a bar, each at its scale, as far as the limit."""
    left, kept = limit, []
    for width, colour in parts:
        kept.append((min(width, left), colour))
        left = max(0.0, left - width)
    return kept


def _told(row: dict) -> str:
    """`, × 1.55`; what is not faster is told by its verdict, and what does not follow the row above
    by what it is compared with."""
    if not row["verdict"]:
        return ""
    verdict = "" if row["verdict"] == "faster" else f" {row['verdict']}"
    against = "" if row["follows"] else f" ({words.short(row['after_label'], 24)})"
    return f",  × {words.measured(row['ratio'])}{verdict}{against}"
