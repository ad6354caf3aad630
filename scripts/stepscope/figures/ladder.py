"""The ladder: a step after each change."""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope.results.tables import Tables, where

from . import colours, marks, places, theme, words
from .curves import in_units
from .steps import PHASES

BROKEN = 1.6  # a bar that is as many times as long as all others is cut
MOST_PLACES = 3
TODAYS = 3  # rungs, at least, of a ladder that page one begins with
VARIANT = ["cell", "variant"]
COMPARED = {"b": "variant", "a": "after"}
STATUS = {"oom": "out of memory"}


def rungs(tables: Tables) -> pd.DataFrame:
    """Whole steps of all ladders, in the order in which they stand there: a row a place and rung,
    with what `variants` says of it, and the `ratio` and `verdict` of its comparison with the one
    that it comes after."""
    pairs = tables.rows("comparisons", study="ladder", mode="step", phase="step", quantity="time")
    judged = pairs.rename(columns=COMPARED)[[*VARIANT, "after", "ratio", "verdict"]]
    rows = places.plain_steps(tables, study="ladder").merge(tables.rows("variants", is_aside=False))
    return rows.merge(judged, how="left").fillna({"verdict": ""})


def climbed(tables: Tables) -> pd.DataFrame:
    """The rungs of the largest places with a whole ladder, first the longest that begins with
    several changes at once, as people run the step.

    Whole is one of as many rungs as page one asks for; where there is none, the longest.
    """
    steps = rungs(tables)
    ladders = steps.groupby("cell")
    counts = ladders["median"].count()
    whole = counts.index[(counts > 0) & (counts >= min(TODAYS, counts.max()))]
    cells = places.in_order(tables, where(steps, cell=set(whole)))["cell"].unique()
    # Rungs of those that people run, 0 of others.
    todays = counts * ladders["variant"].first().str.contains("+", regex=False)
    first = todays.loc[cells[::-1]].nlargest(MOST_PLACES).index
    return steps.set_index("cell").loc[first].reset_index()


def ladder(tables: Tables) -> Figure | None:
    """A panel a place, the largest on top; a bar a rung: phases, the step's interval, its ratio to
    the rung before.

    Of a rung that launches limit a line shows the step without the host.
    """
    shown = climbed(tables)
    if shown.empty:
        return None

    alone = places.plain_steps(tables, "host_free_time", "ladder")[[*VARIANT, "median"]]
    alone = alone.rename(columns={"median": "host_free"}).assign(limits="launches")
    shown = shown.merge(alone, how="left")
    cells = shown.drop_duplicates("cell")
    counts = shown["cell"].value_counts(sort=False)
    subject = "× as fast as the measured row above"
    if shown["host_free"].any():
        subject += "; vertical line: without the host"

    figure, panels = theme.panels(
        len(cells),
        1,
        0.45 + (0.55 + 0.19 * counts).sum(),
        subject,
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


def _bars(panel: Axes, steps: pd.DataFrame, phases: pd.DataFrame) -> None:
    steps = in_units(steps, 1e-3).set_index("variant")
    longest = steps[["median", "high"]].max(axis=1).nlargest(2).tolist()
    # Up to here bars are drawn: all, or all but the longest.
    limit = 1.05 * (longest[-1] if longest[0] > BROKEN * longest[-1] else longest[0])
    # Phases as shares of the step, in which they overlap, as far as the limit.
    ends = phases.pivot_table("median", "variant", "phase").reindex(steps.index)
    ends = ends.reindex(columns=list(PHASES)).fillna(0.0).cumsum(axis=1)
    ends = ends.mul(steps["median"] / ends.iloc[:, -1], axis=0).clip(upper=limit)
    parts = ends.diff(axis=1).fillna(ends)
    is_cut = steps["median"] > limit
    told = [_told(row, limit) for row in steps.to_dict("records")]
    rows = parts.join(steps[["low", "high"]].mask(is_cut)).assign(told=told)
    labels = [words.short(label, 24) for label in steps["label"]]
    marks.keyed_bars(panel, rows, PHASES, labels, xlim=(0, 1.42 * limit))

    for at, (is_short, alone) in enumerate(zip(is_cut, steps["host_free"], strict=True)):
        marks.across_bar(panel, 1e3 * alone, at)
        if is_short:
            panel.text(
                0.93 * limit,
                at,
                "//",
                color=colours.PAPER,
                fontsize=11,
                va="center",
                ha="center",
            )


def _told(row: dict, limit: float) -> str:
    """`39 ms,  × 1.55`; what is not faster is told by its verdict."""
    step = row["median"]
    if math.isnan(step):
        return STATUS.get(row["status"], row["status"])
    told = f"{words.measured(step, row['low'], row['high'])} ms"
    if row["verdict"]:
        told += f",  × {words.measured(row['ratio'])} {row['verdict'].replace('faster', '')}"
    return f"cut short: {told.rstrip()}" if step > limit else told.rstrip()
