"""Timing: a step's phases, its growth with the context, who is launch-limited, and what a precision
brings."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope.axes import MODES
from stepscope.figures import colours, marks, places, theme, words
from stepscope.results.tables import Tables

OF_STEP = MODES["step"].phases
MOST_CONTEXTS = 4
MOST_CELLS = 30


def step_parts(tables: Tables) -> Figure | None:
    """A bar a size and precision, of the phases of the step; a panel a context that about as many
    have. Each has an axis of its own: a context of few tokens would not be seen on one for all.

    The dark bar at its end is the interval of the whole step, which is not synchronised within.
    """
    rows = places.usual_batch(places.phase_times(tables)).dropna(subset=["median"])
    if rows.empty:
        return None
    counts = rows.groupby("context")["cell"].nunique()
    contexts = sorted(counts[counts >= counts.max() / 2].index)[-MOST_CONTEXTS:]
    steps = places.usual_batch(places.tried_steps(tables))
    bars = places.in_order(tables, steps.assign(context=0)).drop_duplicates(["size", "precision"])
    names = list(zip(bars["size"], bars["precision"], strict=True))
    key = {phase: colours.of("phase", phase) for phase in OF_STEP}
    height = 0.65 + 0.16 * len(names)
    subject = "each phase synchronised; each panel has its own scale"
    if len(contexts) == 1:
        subject = "each phase synchronised"
    figure, panels = theme.wrapped(len(contexts), 2, height, subject, key=key, sharey=True)
    for panel, context in zip(panels, contexts, strict=True):
        own = rows[rows["context"] == context]
        _phase_bars(panel, own, steps[steps["context"] == context], names)
        panel.set_title(f"context {context:,.0f}")
    for panel in panels[-2:]:
        panel.set_xlabel("ms")
    return figure


def _phase_bars(
    panel: Axes, rows: pd.DataFrame, steps: pd.DataFrame, names: list[tuple[str, str]]
) -> None:
    for at, (size, precision) in enumerate(names):
        phases = rows[(rows["size"] == size) & (rows["precision"] == precision)]
        whole = steps[(steps["size"] == size) & (steps["precision"] == precision)]
        medians = 1e3 * phases.set_index("phase")["median"]
        parts = [(medians.get(phase, 0.0), colours.of("phase", phase)) for phase in OF_STEP]
        end = marks.stack(panel, at, parts)
        if end:
            low, high = 1e3 * whole["low"], 1e3 * whole["high"]
            marks.intervals(panel, [at] * len(whole), low, high, colours.INK, horizontal=True)
            marks.beside_bar(panel, max(end, high.max()), at, words.number(end), fontsize=7)
        elif (whole["status"] == "oom").any():
            marks.beside_bar(panel, 0, at, "out of memory", color=colours.MUTED, fontsize=7)
    marks.bar_axis(panel, [f"{words.short(size, 14)} {precision}" for size, precision in names])
    panel.set_xlim(0, 1.18 * panel.dataLim.x1 if panel.patches else 1)


def time_by_context(tables: Tables) -> Figure | None:
    """A line a size over the context, a panel a precision; crosses where memory ran out."""
    rows = places.usual_batch(places.tried_steps(tables))
    if rows.dropna(subset=["median"])["context"].nunique() < 2:
        return None
    shown = places.with_lines(rows)
    named: list[tuple[Axes, list[marks.End]]] = []
    subject = words.crossed("whole training step", rows)
    figure, panels = theme.wrapped(len(shown), 2, 2.5, subject, sharex=True, sharey=True)
    for panel, precision in zip(panels, shown, strict=True):
        own = rows[rows["precision"] == precision]
        own = own.assign(**{name: 1e3 * own[name] for name in ("median", "low", "high")})
        colour = colours.of("precision", precision)
        panel.set(xscale="log", yscale="log", title=precision)
        ends: list[marks.End] = []
        lost: list[tuple[float, str]] = []
        for size in places.sizes(tables, own):
            of_size = own[own["size"] == size]
            ends += marks.line(panel, of_size, "context", colour, size)
            without = of_size.loc[of_size["status"] == "oom", "context"]
            lost += [(context, colour) for context in without]
        marks.out_of_memory(panel, lost)
        named.append((panel, ends))
    low, high = marks.span(rows)
    marks.finish(named, rows["context"], (800 * low, 1300 * high))
    figure.supxlabel("context (tokens)", fontsize=8)
    figure.supylabel("ms a step", fontsize=8)
    return figure


WAYS = {  # quantity → what it is called, colour, marker
    "busy_time": ("GPU busy", "green", "s"),
    "host_free_time": ("without the host", "orange", "D"),
    "time": ("by the clock", "blue", "o"),
}


def launch_rows(tables: Tables) -> pd.DataFrame:
    """The steps by the clock, in bf16 or in what is there, of which it is known what they take
    without the host."""
    found = {quantity: places.usual_batch(places.free_steps(tables, quantity)) for quantity in WAYS}
    cells = set(found["busy_time"]["cell"]) | set(found["host_free_time"]["cell"])
    rows = places.in_order(tables, found["time"][found["time"]["cell"].isin(cells)])
    rows = rows[rows["precision"] == "bf16"] if "bf16" in set(rows["precision"]) else rows
    return rows.dropna(subset=["median"])[-MOST_CELLS:]


def launches(tables: Tables) -> Figure | None:
    """A row a timing cell: the step by the clock, without the host, and the busy time."""
    rows = launch_rows(tables)
    found = {quantity: places.usual_batch(places.free_steps(tables, quantity)) for quantity in WAYS}
    if rows.empty:
        return None
    key = {label: colours.OKABE_ITO[colour].light for label, colour, _ in WAYS.values()}
    height = 0.85 + 0.155 * len(rows)
    subject = "a whole training step; its launches on the right"
    figure, axes = theme.panels(1, 1, height, subject, key=key)
    panel = axes[0, 0]
    panel.set_xscale("log")
    for at, row in enumerate(rows.to_dict("records")):
        _ways(panel, at, row, found)
    counted = tables.rows("series", study="timing", quantity="launches", mode="step")
    counts = counted.set_index("cell")["median"]
    beside: marks.Look = {"xycoords": panel.get_yaxis_transform(), "va": "center", "fontsize": 7}
    for at, cell in enumerate(rows["cell"]):
        text = f"{counts.loc[cell]:,.0f}" if cell in counts.index else ""
        panel.annotate(text, (1.02, at), **beside)
    marks.bar_axis(panel, places.names(rows))
    marks.log_axis(panel.xaxis, 1e3 * rows["median"].min() / 3, 1e3 * rows["median"].max())
    panel.set_xlabel("ms")
    return figure


def _ways(panel: Axes, at: int, row: dict, found: dict[str, pd.DataFrame]) -> None:
    """The marks of a cell, and a line from the shortest to the longest where launches limit it."""
    values = {}
    for quantity, (label, name, marker) in WAYS.items():
        own = found[quantity][found[quantity]["cell"] == row["cell"]].dropna(subset=["median"])
        if own.empty:
            continue
        colour, median = colours.OKABE_ITO[name].light, 1e3 * own["median"].iloc[0]
        values[quantity] = median
        marks.point(panel, median, at, colour, label, marker=marker, markersize=4)
        marks.intervals(panel, [at], 1e3 * own["low"], 1e3 * own["high"], colour, horizontal=True)
    if row["limits"] == "launches" and values:
        ends = (min(values.values()), max(values.values()))
        look: marks.Look = {"linewidth": 0.8, "zorder": 1.5, "label": "_launches"}
        panel.plot(ends, (at, at), color=colours.MUTED, **look)


def precision_speedup(tables: Tables) -> Figure | None:
    """How many times as fast a step is as in fp32, over the context, a panel a precision and a line
    a size."""
    ratios = speedups(places.usual_batch(places.free_steps(tables)).dropna(subset=["median"]))
    if ratios.empty:
        return None
    shown = places.precisions(ratios)
    named: list[tuple[Axes, list[marks.End]]] = []
    subject = "whole training step, fp32 (without TF32) = 1"
    figure, panels = theme.wrapped(len(shown), 2, 2.4, subject, sharex=True, sharey=True)
    for panel, precision in zip(panels, shown, strict=True):
        own = ratios[ratios["precision"] == precision]
        colour = colours.of("precision", precision)
        ends: list[marks.End] = []
        panel.set(xscale="log", yscale="log", title=precision)
        panel.axhline(1, color=colours.MUTED, linewidth=0.8, zorder=1)
        for size in places.sizes(tables, own):
            ends += marks.line(panel, own[own["size"] == size], "context", colour, size)
        named.append((panel, ends))
    low, high = marks.span(ratios)
    marks.finish(named, ratios["context"], (min(0.95, low / 1.05), high * 1.1))
    figure.supxlabel("context (tokens)", fontsize=8)
    figure.supylabel("times as fast as fp32", fontsize=8)
    return figure


def speedups(steps: pd.DataFrame) -> pd.DataFrame:
    """Rows of other precisions with `median` = time in fp32 over theirs, and its interval `low`,
    `high`."""
    base = steps[steps["precision"] == "fp32"]
    pairs = steps[steps["precision"] != "fp32"].merge(base, on=places.PLACE, suffixes=("", "_base"))
    return pairs.assign(**quotient(pairs, "_base", ""))


def quotient(pairs: pd.DataFrame, over: str, under: str) -> dict[str, pd.Series]:
    """`median`, `low` and `high` of one time over another, whose columns end in `over` and `under`.

    The two were measured in different processes: the variances of their logarithms add up.
    """
    ratio = pairs[f"median{over}"] / pairs[f"median{under}"]
    halves = [np.log(pairs[f"high{which}"] / pairs[f"low{which}"]) / 2 for which in (over, under)]
    half = np.hypot(*halves)
    return {"median": ratio, "low": ratio * np.exp(-half), "high": ratio * np.exp(half)}
