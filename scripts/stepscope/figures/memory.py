"""Memory: what is alive over a step, and how the peak grows with the context."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme, words
from stepscope.results.tables import Tables

KINDS = {  # column of memory_timeline, or of a snapshot's → category; from below
    "parameters": "parameters",
    "optimizer_state": "optimizer state",
    "gradients": "gradients",
    "cast_weights": "cast weights",
    "activations": "activations",
    "workspace": "workspace",
    "buffers": "buffers",
    "unknown": "unknown",
    "other": "other",
}
MOST_MOMENTS = 1200  # that are drawn
LEAST_NAMED = 0.06  # of the panel's height, from which on an area has room for its name


def recorded(tables: Tables) -> pd.DataFrame:
    """What is alive over one step: a ladder's place, else the largest that fitted; in bf16 if it is
    there."""
    rows = tables.rows("memory_timeline", options="", mode="step")
    lost = tables.rows("cells", status="oom")["cell"]
    rows = rows[~rows["cell"].isin(lost)]
    of_ladders = tables.rows("series", study="ladder")[places.PLACE].drop_duplicates()
    climbed = rows.merge(of_ladders, on=places.PLACE)
    rows = places.largest(tables, rows if climbed.empty else climbed)
    if rows.empty:
        return rows
    precision = "bf16" if "bf16" in set(rows["precision"]) else rows["precision"].iloc[0]
    return rows[rows["precision"] == precision]


def memory_over_step(tables: Tables) -> Figure | None:
    """Bytes alive by category over one step."""
    rows = recorded(tables)
    if rows.empty:
        return None
    return of_recording(rows, words.place(rows.iloc[0].to_dict(), precision=True))


def of_recording(rows: pd.DataFrame, subject: str) -> Figure | None:
    """Bytes alive over time, stacked by category; dashed what the allocator reserved, if that is
    known.

    rows: a moment each, in order, with `time` in seconds, and in bytes any of the columns of
    `KINDS`; `reserved` and `phase` may be missing.
    """
    kinds = {column: kind for column, kind in KINDS.items() if column in rows}
    rows = rows.assign(**{column: rows[column].fillna(0.0) for column in kinds})
    rows = rows.assign(total=rows[list(kinds)].sum(axis=1))
    if rows.empty or rows["total"].max() <= 0:
        return None
    peak_row = int(rows["total"].to_numpy().argmax())
    every = -(-len(rows) // MOST_MOMENTS)
    kept = sorted({*range(0, len(rows), every), peak_row, len(rows) - 1})
    rows = rows.iloc[kept]
    unit, scale = words.byte_unit(rows["total"].max())
    reserved = rows["reserved"].max() / scale if "reserved" in rows else float("nan")
    has_reserved = reserved == reserved
    told = f"{subject}; peak (triangle) {words.number(rows['total'].max() / scale)} {unit}"
    told += f", reserved (dashed) {words.number(reserved)}" if has_reserved else ""
    figure, axes = theme.panels(1, 1, 3.1, told)
    panel = axes[0, 0]
    time, values = 1e3 * rows["time"].to_numpy(), rows[list(kinds)].to_numpy().T / scale
    top = 1.14 * max(values.sum(axis=0).max(), reserved if has_reserved else 0.0)
    panel.set(xlim=(time[0], time[-1]), ylim=(0, top), xlabel="ms since the start", ylabel=unit)
    shades = [colours.of("memory", kind) for kind in kinds.values()]
    panel.stackplot(time, values, colors=shades, linewidth=0)
    if has_reserved:
        dashed: marks.Look = {"linewidth": 1, "linestyle": (0, (4, 2)), "label": "reserved"}
        panel.plot(time, rows["reserved"] / scale, color=colours.INK, **dashed)
    at = kept.index(peak_row)
    peak: marks.Look = {"marker": "v", "markersize": 5, "label": "peak"}
    panel.plot(time[at], values[:, at].sum(), color=colours.INK, **peak)
    _phases(panel, time, list(rows["phase"]) if "phase" in rows else [], top)
    _names(panel, time, values, list(kinds.values()))
    return figure


def _phases(panel: Axes, time: np.ndarray, phases: list[str], top: float) -> None:
    """A line where a phase begins, and its name at the panel's upper edge."""
    for at, (before, phase) in enumerate(zip(["", *phases], phases, strict=False)):
        if phase and phase != before:
            panel.axvline(time[at], color=colours.MUTED, linewidth=0.6, zorder=3)
            look: marks.Look = {"textcoords": "offset points", "fontsize": 7}
            panel.annotate(phase, (time[at], top), (3, -8), color=colours.MUTED, **look)


def _names(panel: Axes, time: np.ndarray, values: np.ndarray, kinds: list[str]) -> None:
    """Names of the areas right of them where they still are there at the end, else in their
    thickest place."""
    floors = np.vstack([np.zeros(values.shape[1]), values.cumsum(axis=0)])
    middles = (floors[:-1] + floors[1:]) / 2
    least = LEAST_NAMED * panel.get_ylim()[1]
    ends = [
        (kind, time[-1], middles[at, -1], colours.of("memory", kind))
        for at, kind in enumerate(kinds)
        if values[at, -1] > least
    ]
    marks.label_ends(panel, ends)
    for at, kind in enumerate(kinds):
        thickest = int(values[at].argmax())
        if values[at, -1] <= least < values[at, thickest]:
            look: marks.Look = {"ha": "center", "va": "center", "fontsize": theme.LABEL}
            panel.text(time[thickest], middles[at, thickest], kind, color=colours.ON_BAR, **look)


def memory_growth(tables: Tables) -> Figure | None:
    """Peak of a training step over the context, a line a size, a panel a precision; dashed the
    memory of the device."""
    rows, word = places.peaks(tables, "timing")
    rows = places.usual_batch(rows)
    if rows["context"].nunique() < 2:
        return None
    lost = places.usual_batch(places.free_steps(tables))
    lost = lost[lost["status"] == "oom"]
    limit = tables.rows("cells", study="timing", device="cuda")["memory"].max()
    unit, scale = words.byte_unit(rows["median"].max())
    shown, named = places.with_lines(rows), []
    subject = words.crossed(f"{word} at the peak of a training step", lost)
    figure, panels = theme.wrapped(len(shown), 2, 2.4, subject, sharex=True, sharey=True)
    for panel, precision in zip(panels, shown, strict=True):
        own = rows[rows["precision"] == precision]
        colour = colours.of("precision", precision)
        ends: list[marks.End] = []
        panel.set(xscale="log", yscale="log", title=precision)
        for size in places.sizes(tables, own):
            of_size = own[own["size"] == size]
            shown_as = {"context": of_size["context"], "median": of_size["median"] / scale}
            ends += marks.line(panel, pd.DataFrame(shown_as), "context", colour, size)
        contexts = lost[lost["precision"] == precision]["context"]
        marks.out_of_memory(panel, [(context, colour) for context in contexts])
        if limit == limit:
            marks.ceiling(panel, limit / scale, "the GPU's memory")
        named.append((panel, ends))
    low = rows["median"].min() / scale
    high = np.nanmax([rows["median"].max(), limit]) / scale
    marks.finish(named, rows["context"], (low / 1.3, high * 1.5))
    figure.supxlabel("context (tokens)", fontsize=8)
    figure.supylabel(unit, fontsize=8)
    return figure
