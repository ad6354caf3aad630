"""Timing: a step's phases, its growth with the context, who is launch-limited, what a precision
brings, and of several devices where the step of each rank goes."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope.axes import MODES
from stepscope.figures import colours, curves, marks, places, theme, words
from stepscope.results.tables import Tables, where

PHASES = colours.key("phase", MODES["step"].phases)
BAR = ["size", "precision"]  # what a bar of phases is of; the last where several were built alike
MOST_CONTEXTS = 4
MOST_RANKS = 24
MOST_CELLS = 30


def phase_parts(rows: pd.DataFrame) -> list[marks.Part]:
    """(ms, colour) of the phases in these rows, in the order of the step."""
    milliseconds = 1e3 * rows.set_index("phase")["median"]
    return [(milliseconds.get(phase, 0.0), colour) for phase, colour in PHASES.items()]


def step_parts(tables: Tables) -> Figure | None:
    """A bar a size and precision, of the phases of the step; a panel a context that about as many
    have. Each has an axis of its own: a context of few tokens would not be seen on one for all.

    The dark bar at its end is the interval of the whole step, which is not synchronised within.
    """
    rows = places.usual_batch(places.plain_steps(tables, phase=list(PHASES))).dropna(
        subset="median"
    )
    if rows.empty:
        return None

    counts = rows.groupby("context")["cell"].nunique()
    contexts = counts.index[counts >= counts.max() / 2][-MOST_CONTEXTS:]
    steps = places.tried_steps(tables)
    bars = places.in_order(tables, steps.assign(context=0)).drop_duplicates(
        ["size", "built"], keep="last"
    )
    subject = "each phase synchronised"
    if len(contexts) > 1:
        subject += "; each panel has its own scale"
    height = 0.65 + 0.16 * len(bars)
    figure, panels = theme.wrapped(len(contexts), 2, height, subject, key=PHASES, sharey=True)

    for panel, context in zip(panels, contexts, strict=True):
        _phase_bars(panel, bars, *(where(frame, context=context) for frame in (rows, steps)))
        panel.set_title(f"context {context:,.0f}")

    for panel in panels[-2:]:
        panel.set_xlabel("ms")

    return figure


def _phase_bars(
    panel: Axes,
    bars: pd.DataFrame,
    phases: pd.DataFrame,
    steps: pd.DataFrame,
) -> None:
    for at, bar in enumerate(bars.to_dict("records")):
        own = places.alike(phases, bar, BAR)
        whole = next(iter(places.alike(steps, bar, BAR).to_dict("records")), {})
        if len(own):
            low, high = 1e3 * whole["low"], 1e3 * whole["high"]
            marks.bar(panel, at, phase_parts(own), low=low, high=high, fontsize=7)
        elif whole.get("status") == "oom":
            marks.beside_bar(panel, 0, at, "out of memory", color=colours.MUTED, fontsize=7)

    sizes = bars["size"].map(lambda size: words.short(size, 14))
    longest = 1.18 * panel.dataLim.x1 if panel.patches else 1
    marks.bar_axis(panel, list(sizes + " " + bars["built"]), xlim=(0, longest))


def time_by_context(tables: Tables) -> Figure | None:
    """A line a size over the context, a panel a precision; crosses where memory ran out."""
    rows = places.tried_steps(tables)
    if rows.dropna(subset="median")["context"].nunique() < 2:
        return None

    return curves.over_context(
        tables,
        curves.in_units(rows, 1e-3),
        places.with_lines,
        "whole training step",
        unit="ms a step",
        margins=(0.8, 1.3),
        height=2.5,
    )


WAYS = {  # quantity → what it is called, and its marker
    "busy_time": ("GPU busy", "s"),
    "host_free_time": ("without the host", "D"),
    "time": ("by the clock", "o"),
}


def _by_ways(tables: Tables) -> pd.DataFrame:
    """The whole steps in all of these ways."""
    found = (places.usual_batch(places.plain_steps(tables, quantity)) for quantity in WAYS)
    return pd.concat(found).dropna(subset="median")


def launch_rows(tables: Tables) -> pd.DataFrame:
    """The steps by the clock, in bf16 or in what is there, of which it is known what they take
    without the host."""
    rows = _by_ways(tables)
    is_clock = rows["quantity"] == "time"
    known = rows[is_clock & rows["cell"].isin(rows.loc[~is_clock, "cell"])]
    narrow = where(known, precision="bf16")
    return places.in_order(tables, known if narrow.empty else narrow)[-MOST_CELLS:]


def launches(tables: Tables) -> Figure | None:
    """A row a timing cell: the step by the clock, without the host, and the busy time."""
    rows = launch_rows(tables)
    if rows.empty:
        return None

    height = 0.85 + 0.155 * len(rows)
    subject = "a whole training step; its launches on the right"
    key = colours.key("way", dict(WAYS.values()))

    figure, panel = theme.single(height, subject, key)
    panel.set_xscale("log")
    every = _by_ways(tables)
    counts = places.plain_steps(tables, "launches").set_index("cell")["median"]
    beside = panel.get_yaxis_transform()

    for at, row in enumerate(rows.to_dict("records")):
        _marks(panel, at, where(every, cell=row["cell"]), row["limits"])
        if row["cell"] in counts:
            count = f"{counts[row['cell']]:,.0f}"
            panel.annotate(count, (1.02, at), xycoords=beside, va="center", fontsize=7)

    marks.bar_axis(panel, places.names(rows), xlabel="ms")
    marks.log_axis(panel.xaxis, 1e3 * rows["median"].min() / 3, 1e3 * rows["median"].max())
    return figure


def _marks(panel: Axes, at: int, rows: pd.DataFrame, limits: str) -> None:
    """The marks of a cell, and a line from the shortest to the longest where launches limit it."""
    values = curves.in_units(rows, 1e-3)

    for row in values.to_dict("records"):
        label, marker = WAYS[row["quantity"]]
        marks.measured(panel, at, row, colours.of("way", label), label, marker, markersize=4)

    if limits == "launches":
        panel.plot(
            values["median"].agg(["min", "max"]),
            [at, at],
            color=colours.MUTED,
            linewidth=0.8,
            zorder=1.5,
            label="_launches",
        )


def precision_speedup(tables: Tables) -> Figure | None:
    """How many times as fast a step is as in fp32, over the context, a panel a precision and a line
    a size."""
    steps = places.in_order(tables, places.tried_steps(tables).dropna(subset="median"))
    ratios = relative(steps, steps["built"] == "fp32", places.PLACE, power=-1.0)
    if ratios.empty:
        return None

    return curves.over_context(
        tables,
        ratios,
        places.built,
        "whole training step, fp32 (without TF32) = 1",
        unit="times as fast as fp32",
        margins=(0.95, 1.1),
        height=2.4,
        has_base=True,
    )


def relative(
    steps: pd.DataFrame, is_base: pd.Series, same: list[str], power: float = 1.0
) -> pd.DataFrame:
    """Times, all but the base's, over that of the base where these columns are the same: `median`,
    with its interval `low`, `high`.

    power: −1 for times as fast. The two were measured in different processes: the variances of
    their logarithms add up.
    """
    pairs = steps[~is_base].merge(steps[is_base], on=same, suffixes=("", "_base"))
    ratio = (pairs["median"] / pairs["median_base"]) ** power
    own, base = (np.log(pairs[f"high{of}"] / pairs[f"low{of}"]) / 2 for of in ("", "_base"))
    factor = np.exp(np.hypot(own, base))
    return pairs.assign(median=ratio, low=ratio / factor, high=ratio * factor)


RANK = {  # what a bar shows: the columns that add up to it
    "computing alone": ("alone",),
    "slowed": ("slowed",),
    "elsewhere": ("apart",),
    "extra kernels": ("extra", "gone", "at_once"),
    "transfer": ("transfer",),
    "waiting": ("waiting",),
    "idle": ("idle",),
}


def most_devices(tables: Tables) -> pd.DataFrame:
    """The ranks of the cell with the most devices."""
    rows = tables.rows("ranks")
    if rows.empty:
        return rows
    chosen = rows.sort_values(["devices", "clock"]).iloc[-1]["cell"]
    return rows[rows["cell"] == chosen].head(MOST_RANKS)


def ranks(tables: Tables) -> Figure | None:
    """A bar a strategy and rank; what is below 0 is taken off computing alone."""
    rows = most_devices(tables)
    if rows.empty:
        return None

    unit, seconds = words.time_unit(rows["clock"].max())
    key = colours.key("rank", RANK)
    subject = "a step of each rank under the profiler"

    figure, panel = theme.single(1.0 + 0.17 * len(rows), subject, key)
    # (rows, parts), in units of the axis
    lengths = pd.DataFrame({name: rows[list(own)].sum(axis=1) for name, own in RANK.items()})
    lengths /= seconds
    lengths["computing alone"] += lengths.clip(upper=0).sum(axis=1)
    names = rows["variant"] + rows["rank"].map(", rank {:.0f}".format)
    limits = (0, 1.15 * rows["clock"].max() / seconds)
    marks.keyed_bars(panel, lengths, key, list(names), xlabel=unit, xlim=limits)
    return figure
