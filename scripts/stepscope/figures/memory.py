"""Memory: what is alive over a step, and how the peak grows with the context."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope.results.tables import Tables, where

from . import colours, curves, marks, places, theme, words

MOST_MOMENTS = 600  # that are drawn
LEAST_NAMED = 0.06  # of the panel's height, from which on an area has room for its name


def recorded(tables: Tables, mode: str = "step", options: str = "") -> pd.DataFrame:
    """What is alive over one step: a ladder's place, else the largest that fitted; in bf16 if it is
    there."""
    lost = tables.rows("cells", status="oom")["cell"]
    rows = tables.rows("memory_timeline", options=options, mode=mode)
    fitted = rows[~rows["cell"].isin(lost)]
    return places.main_step(tables, places.on_ladders(tables, fitted))


def memory_over_step(tables: Tables) -> Figure | None:
    """Bytes alive by category over one step."""
    return _of(recorded(tables))


def memory_of_inference(tables: Tables) -> Figure | None:
    """Over a forward pass that keeps nothing."""
    return _of(recorded(tables, "inference"))


def memory_of_forward(tables: Tables) -> Figure | None:
    """Over one that keeps what backward would need."""
    return _of(recorded(tables, "forward"))


def memory_from_cold(tables: Tables) -> Figure | None:
    """Over the first two steps of a process."""
    return _of(recorded(tables, options="start=cold"))


def _of(rows: pd.DataFrame) -> Figure | None:
    if rows.empty:
        return None
    return of_recording(rows, words.place(rows.iloc[0]))


def of_recording(rows: pd.DataFrame, subject: str) -> Figure | None:
    """Bytes alive over time, stacked by category; dashed what the allocator reserved, if that is
    known.

    rows: a moment each, in order, with `time` in seconds, and in bytes any of the kinds of memory
    that have a colour, with _ for a space; `reserved` and `phase` may be missing.
    """
    rows = rows.rename(columns=lambda column: column.replace("_", " "))
    key = colours.key("memory", rows.columns)
    totals = rows[list(key)].sum(axis=1).to_numpy()
    if not totals.any():
        return None

    peak_row = int(totals.argmax())
    every = -(-len(rows) // MOST_MOMENTS)
    kept = sorted({*range(0, len(rows), every), peak_row, len(rows) - 1})
    rows = rows.iloc[kept].reindex(columns=["time", "phase", "reserved", *key])
    unit, scale = words.byte_unit(totals.max())
    time = 1e3 * rows["time"].to_numpy()
    values = rows[list(key)].fillna(0.0).to_numpy().T / scale
    reserved = rows["reserved"] / scale
    peak = totals.max() / scale
    told = f"{subject}; peak (triangle) {words.number(peak)} {unit}"
    if reserved.any():
        told += f", reserved (dashed) {words.number(reserved.max())}"

    figure, panel = theme.single(3.1, told)
    top = 1.14 * np.nanmax([peak, reserved.max()])
    panel.set(
        xlim=(time[0], time[-1]),
        ylim=(0, top),
        xlabel="ms since the start",
        ylabel=unit,
    )
    panel.stackplot(time, values, colors=list(key.values()), linewidth=0)
    if reserved.any():
        panel.plot(time, reserved, label="reserved", **marks.DASHED)
    moment = time[kept.index(peak_row)]
    panel.plot(moment, peak, "v", color=colours.INK, label="peak", markersize=5)
    _phases(panel, time, rows["phase"].astype("str").fillna(""))
    _names(panel, time, values, key)
    return figure


def _phases(panel: Axes, time: np.ndarray, phases: pd.Series) -> None:
    """A line where a phase begins, and its name at the panel's upper edge where it has room, the
    last one's whatever there is."""
    begins = (phases != "") & (phases != phases.shift())
    starts = time[begins]
    point = (time[-1] - time[0]) / (72 * (theme.WIDTH - 1.5))
    rooms = np.diff(starts, append=np.inf) / point

    for start, phase, room in zip(starts, phases[begins], rooms, strict=True):
        panel.axvline(start, color=colours.MUTED, linewidth=0.6, zorder=3)
        panel.annotate(
            phase if theme.text_width(phase) < room else "",
            (start, panel.get_ylim()[1]),
            (3, -8),
            textcoords="offset points",
            fontsize=7,
            color=colours.MUTED,
        )


def _names(
    panel: Axes,
    time: np.ndarray,
    values: np.ndarray,
    key: dict[str, str],
) -> None:
    """Names of the areas right of them where they still are there at the end, else in their
    thickest place.

    time: (moments,); values: (kinds, moments), thicknesses from below.
    """
    middles = values.cumsum(axis=0) - values / 2
    least = LEAST_NAMED * panel.get_ylim()[1]
    ends: list[marks.End] = []

    for kind, thickness, middle in zip(key, values, middles, strict=True):
        thickest = thickness.argmax()
        if thickness[-1] > least:
            ends.append((kind, time[-1], middle[-1], key[kind]))
        elif thickness[thickest] > least:
            panel.text(
                time[thickest],
                middle[thickest],
                kind,
                ha="center",
                va="center",
                fontsize=theme.LABEL,
                color=colours.ON_BAR,
            )

    marks.label_ends(panel, ends)


def memory_growth(tables: Tables) -> Figure | None:
    """Peak of a training step over the context, a line a size, a panel a precision; dashed the
    memory of the device."""
    peaks, word = places.peaks(tables)
    rows = places.usual_batch(peaks)
    if rows["context"].nunique() < 2:
        return None

    lost = where(places.tried_steps(tables), status="oom")
    unit, scale = words.byte_unit(rows["median"].max())
    limit = tables.rows("cells", study="timing", device="cuda")["memory"].max()
    levels = {} if math.isnan(limit) else {"the GPU's memory": limit / scale}
    known = rows.assign(median=rows["median"] / scale)
    shown = pd.concat([known, lost]).drop(columns=["low", "high"])
    subject = f"{word} at the peak of a training step"
    return curves.over_context(tables, shown, subject, unit, levels)
