"""Timing: a step's phases, its growth with the context, who is launch-limited, what a precision
brings, and of several devices where the step of each rank goes."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stepscope.axes import MODES
from stepscope.results.tables import Tables, where

from . import colours, curves, marks, places, theme, words

PHASES = colours.key("phase", MODES["step"].phases)
BAR = ["size", "precision"]  # what a bar of phases is of; the last where several were built alike
MOST_CONTEXTS = 4
MOST_RANKS = 24
MOST_CELLS = 30


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
    steps["told"] = steps["status"].map({"oom": "out of memory"}).fillna("")
    bars = places.in_order(tables, steps.assign(context=0)).drop_duplicates(
        ["size", "built"], keep="last"
    )
    names = bars["size"].map(lambda size: words.short(size, 14)) + " " + bars["built"]
    subject = "each phase synchronised"
    if len(contexts) > 1:
        subject += "; each panel has its own scale"
    height = 0.65 + 0.16 * len(bars)
    figure, panels = theme.wrapped(len(contexts), 2, height, subject, key=PHASES, sharey=True)

    for panel, context in zip(panels, contexts, strict=True):
        phases, whole = (
            curves.in_units(where(each, context=context), 1e-3) for each in (rows, steps)
        )
        parts = phases.pivot_table("median", BAR, "phase")
        shown = whole.set_index(BAR)[["told", "low", "high"]].join(parts)
        shown = shown.reindex(pd.MultiIndex.from_frame(bars[BAR]))
        marks.keyed_bars(panel, shown, PHASES, list(names), title=f"context {context:,.0f}")
        panel.set_xlim(0, 1.18 * panel.dataLim.x1)

    for panel in panels[-2:]:
        panel.set_xlabel("ms")

    return figure


def time_by_context(tables: Tables) -> Figure | None:
    """A line a size over the context, a panel a precision; crosses where memory ran out."""
    rows = places.tried_steps(tables)
    if rows.dropna(subset="median")["context"].nunique() < 2:
        return None

    shown = curves.in_units(rows, 1e-3)
    return curves.over_context(tables, shown, "whole training step", "ms a step", {})


WAYS = {  # quantity → what it is called
    "busy_time": "GPU busy",
    "host_free_time": "without the host",
    "time": "by the clock",
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
    key = colours.key("way", WAYS.values())

    figure, panel = theme.single(height, subject, key)
    panel.set_xscale("log")
    every = curves.in_units(_by_ways(tables), 1e-3)
    counts = places.plain_steps(tables, "launches").set_index("cell")["median"]
    beside = panel.get_yaxis_transform()

    for at, row in enumerate(rows.to_dict("records")):
        own = where(every, cell=row["cell"])
        for each in own.to_dict("records"):
            name = WAYS[each["quantity"]]
            marks.measured(panel, at, each, key[name], name, markersize=4)
        if row["limits"] == "launches":
            panel.plot(own["median"], [at] * len(own), label="_launches", **marks.BASE)
        if row["cell"] in counts:
            count = f"{counts[row['cell']]:,.0f}"
            panel.annotate(count, (1.02, at), xycoords=beside, va="center", fontsize=7)

    marks.bar_axis(panel, places.names(rows), xlabel="ms")
    marks.log_axis(panel.xaxis, *panel.get_xlim())
    return figure


def precision_speedup(tables: Tables) -> Figure | None:
    """How many times as fast a step is as in fp32, over the context, a panel a precision and a line
    a size."""
    steps = places.in_order(tables, places.tried_steps(tables).dropna(subset="median"))
    ratios = relative(steps, steps["built"] == "fp32", places.PLACE, power=-1.0)
    if ratios.empty:
        return None

    subject, unit = "whole training step", "times as fast as fp32 (without TF32)"
    return curves.over_context(tables, ratios, subject, unit, {"": 1.0})


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
