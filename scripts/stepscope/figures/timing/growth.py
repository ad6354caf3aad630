"""Figures: the time of a step over the size of the model, and over the context."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter, NullLocator

from stepscope.figures import colours, theme
from stepscope.figures.choosing import MOST_PANELS, MOST_SIZES, apart, pick
from stepscope.report.kit.order import PHASES, label, machine_labels, main_grid, ordered, precision_rank

MOST_HARDWARE = 4
# The phases drawn for one hardware label, for two, and for more: rows of panels are limited.
SHOWN = {1: ("forward", "backward", "step"), 2: ("forward", "step")}


def _rows(grid: pd.DataFrame) -> list[tuple[str, str]]:
    """(hardware, phase) of each row of panels."""
    shown = SHOWN.get(grid["hardware"].nunique(), ("step",))
    machines = [(name, grid[grid["hardware"] == name]) for name in machine_labels(grid["hardware"])[:MOST_HARDWARE]]
    return [(name, phase) for name, own in machines for phase in _phases(own, shown)]


def _phases(grid: pd.DataFrame, shown: tuple[str, ...]) -> list[str]:
    """The phases to draw: those of a training step, else the fullest that was measured."""
    measured = [phase for phase in PHASES if f"{phase}_median_ms" in grid and grid[f"{phase}_median_ms"].notna().any()]
    return [phase for phase in shown if phase in measured] or measured[-1:]


def _size_name(grid: pd.DataFrame, size: str) -> str:
    count = grid.loc[grid["size"] == size, "parameters"].max()
    return theme.short(size, 14) + (f" · {theme.parameter_number(count)}" if pd.notna(count) else "")


def _growth(tables, x: str, by: str, x_label: str) -> Figure:
    """Time over `x`, a line a precision, a column of panels for each value of `by`."""
    grid = main_grid(tables["timing"])
    if not grid.empty:
        grid = grid.dropna(subset=["parameters", "context"])
        sizes = pick(list(dict.fromkeys(grid.sort_values("parameters")["size"])), MOST_SIZES)
        grid = grid[grid["size"].isin(sizes)]
    rows = _rows(grid) if not grid.empty else []
    if not rows:
        return theme.empty("No timing cell has been measured: nothing to draw.")
    columns = pick(
        list(dict.fromkeys(grid.sort_values(["parameters", "context"] if by == "size" else by)[by])), MOST_PANELS
    )
    figure, axes = theme.panels(len(rows), len(columns), 1.72, sharex=True, sharey="row")
    several = grid["hardware"].nunique() > 1
    for (hardware, phase), row in zip(rows, axes, strict=True):
        part = grid[(grid["hardware"] == hardware) & grid[by].isin(columns)]
        limits = _limits(part, phase)
        for value, panel in zip(columns, row, strict=True):
            ends = _draw_lines(panel, part[part[by] == value], x, phase, limits)
            if value == columns[-1]:
                theme.label_lines(panel, ends)
        row[0].set_ylabel(f"{label(phase)} (ms)")
        if several and phase == next(each for name, each in rows if name == hardware):
            row[0].set_title(
                theme.short(hardware, 60), color=colours.MUTED, pad=17 if row is axes[0] else 6, fontweight="normal"
            )
    for value, panel in zip(columns, axes[0], strict=True):
        title = _size_name(grid, value) if by == "size" else f"context {value:,.0f}"
        panel.annotate(title, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", fontsize=8,
                       fontweight="bold", va="bottom")  # fmt: skip
    for panel in axes[-1]:
        _x_ticks(panel, grid, x)
    figure.supxlabel(x_label, fontsize=8)
    return figure


def _limits(part: pd.DataFrame, phase: str) -> tuple[float, float]:
    """Limits of the y axis (ms), with room for the out-of-memory marks where there are any."""
    times = part[f"{phase}_median_ms"].dropna()
    times = times[times > 0]
    if times.empty:
        return 0.1, 10.0
    low, high = times.min() / 1.5, times.max() * 1.5
    lost = part[part[f"{phase}_status"] == "oom"]
    room = theme.room_for_out_of_memory(int(lost.groupby(["size", "context"]).size().max()) if len(lost) else 0)
    return low, high * (high / low) ** (room / (1 - room))


def _draw_lines(panel, part: pd.DataFrame, x: str, phase: str, limits: tuple[float, float]) -> list[tuple]:
    """Draws one panel; returns the lines' ends for `label_lines`."""
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(*limits)
    theme.log_axis(panel.yaxis, *limits)
    ends, lost = [], []
    for precision in ordered(part["precision"], key=precision_rank):
        line = part[part["precision"] == precision].sort_values(x)
        colour = colours.precision(precision)
        lost += [(value, colour) for value in line.loc[line[f"{phase}_status"] == "oom", x]]
        line = line.dropna(subset=[f"{phase}_median_ms"])
        if line.empty:
            continue
        median = line[f"{phase}_median_ms"]
        panel.plot(
            line[x], median, color=colour, marker="o", markersize=3, linestyle=colours.DASHES.get(precision, "solid")
        )
        theme.draw_intervals(panel, line[x], line[f"{phase}_ci_low_ms"], line[f"{phase}_ci_high_ms"], colour)
        ends.append((theme.short(precision, 10), line[x].iloc[-1], median.iloc[-1], colours.precision_text(precision)))
    theme.mark_out_of_memory(panel, lost)
    return ends


def _x_ticks(panel, grid: pd.DataFrame, x: str) -> None:
    """Ticks at the sizes or contexts that were measured."""
    if x == "context":
        places = pick(ordered(grid["context"]), 7)
        names = [f"{value:,.0f}" for value in places]
    else:
        sizes = grid.groupby("size")["parameters"].max().sort_values()
        sizes = sizes[apart(list(sizes))]
        places, names = list(sizes), [_size_name(grid, size) for size in sizes.index]
        panel.tick_params(axis="x", labelrotation=40)
    panel.xaxis.set_major_locator(FixedLocator(places))
    panel.xaxis.set_major_formatter(FixedFormatter(names))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_minor_formatter(NullFormatter())
    if x != "context":
        for text in panel.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor", fontsize=6.5)


def draw_by_size(tables) -> Figure:
    """Time over the parameter count, by context."""
    return _growth(tables, "parameters", "context", "model size and parameters (log scale)")


def draw_by_context(tables) -> Figure:
    """Time over the context, by size."""
    return _growth(tables, "context", "size", "context (tokens, log scale)")
