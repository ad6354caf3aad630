"""Figure: the speed-up of mixed precision over fp32 by model size, for each phase and context."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter, NullLocator

from stepscope.figures import colours, theme
from stepscope.figures.choosing import MOST_PANELS, pick
from stepscope.report.data.mixed import PHASES, Mixed, speeds_frame
from stepscope.report.kit.order import machine_labels, ordered, precision_rank

MOST_HARDWARE = 4


def draw_speedup(tables) -> Figure:
    """Speed-up over parameters, a line a precision; columns of panels by context, rows by machine and phase."""
    grid = _main(speeds_frame(Mixed(tables)))
    if grid.empty or grid["ratio"].notna().sum() == 0:
        return theme.empty("No cell was timed both in fp32 and in 16 bits: nothing to draw.")
    machines = machine_labels(grid.loc[grid["ratio"].notna(), "hardware"])[:MOST_HARDWARE]
    rows = [(hardware, phase) for hardware in machines for phase in _phases(grid, hardware, len(machines))]
    contexts = pick(ordered(grid["context"]), MOST_PANELS)
    figure, axes = theme.panels(len(rows), len(contexts), 1.45, sharex=True, sharey=True)
    limits = _limits(grid)
    for (hardware, phase), line in zip(rows, axes, strict=True):
        own = grid[(grid["hardware"] == hardware) & (grid["phase"] == phase)]
        for context, panel in zip(contexts, line, strict=True):
            ends = _draw(panel, own[own["context"] == context], limits)
            if context == contexts[-1]:
                theme.label_lines(panel, ends, gap=0.12)
        line[0].set_ylabel(PHASES[phase])
        if len(machines) > 1 and phase == next(each for name, each in rows if name == hardware):
            line[0].annotate(
                theme.short(hardware, 60),
                (0, 1),
                (0, 18 if line is axes[0] else 5),
                color=colours.MUTED,
                xycoords="axes fraction",
                textcoords="offset points",
                va="bottom",
                annotation_clip=False,
            )
    for context, panel in zip(contexts, axes[0], strict=True):
        panel.set_title(f"context {context:,.0f}")
    for panel in axes[-1]:
        _name_sizes(panel, grid)
    figure.supxlabel("model size (by parameters, log scale)", fontsize=8)
    figure.supylabel("times as fast as in fp32 (log scale)", fontsize=8)
    return figure


def _main(grid: pd.DataFrame) -> pd.DataFrame:
    """The pairs of the most frequent batch, mode and options: a figure holds one of each."""
    grid = grid.dropna(subset=["parameters", "context"])
    for name in ("options", "mode", "batch"):
        values = grid[name].dropna()
        if values.nunique() > 1:
            grid = grid[grid[name] == ("" if name == "options" and (values == "").any() else values.mode()[0])]
    return grid


def _phases(grid: pd.DataFrame, hardware: str, machines: int) -> list[str]:
    """All phases of one machine; of several the step, or what was timed instead."""
    own = grid[(grid["hardware"] == hardware) & grid["ratio"].notna()]
    timed = [phase for phase in PHASES if (own["phase"] == phase).any()]
    if machines == 1:
        return timed
    return ["step"] if "step" in timed else timed[-1:]


def _limits(grid: pd.DataFrame) -> tuple[float, float]:
    """Of the y axis, with room above for what ran out of memory."""
    low, high = min(grid["low"].min(), 0.9) / 1.1, max(grid["high"].max(), 1.1) * 1.1
    room = theme.room_for_out_of_memory(int(grid["precision"].nunique()) if (grid["lost"] == True).any() else 0)  # noqa: E712
    return low, high * (high / low) ** (room / (1 - room))


def _draw(panel, part: pd.DataFrame, limits: tuple[float, float]) -> list[tuple]:
    """One panel; returns the lines' ends for their labels."""
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(*limits)
    theme.log_axis(panel.yaxis, *limits)
    panel.axhline(1, color=colours.INK, linewidth=0.8)
    ends, lost = [], []
    for precision in ordered(part["precision"], key=precision_rank):
        line = part[part["precision"] == precision].sort_values("parameters")
        colour = colours.precision(precision)
        lost += [(value, colour) for value in line.loc[line["ratio"].isna(), "parameters"]]
        line = line.dropna(subset=["ratio"])
        if line.empty:
            continue
        dashes = colours.DASHES.get(precision, "solid")
        panel.plot(line["parameters"], line["ratio"], color=colour, marker="o", markersize=3, linestyle=dashes)
        theme.draw_intervals(panel, line["parameters"], line["low"], line["high"], colour)
        ends.append((precision, line["parameters"].iloc[-1], line["ratio"].iloc[-1], colours.precision_text(precision)))
    theme.mark_out_of_memory(panel, lost)
    return ends


def _name_sizes(panel, grid: pd.DataFrame) -> None:
    sizes = grid.groupby("size")["parameters"].max().sort_values()
    panel.xaxis.set_major_locator(FixedLocator(list(sizes)))
    panel.xaxis.set_major_formatter(FixedFormatter([theme.short(size, 12) for size in sizes.index]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.tick_params(axis="x", labelrotation=40)
    for text in panel.get_xticklabels():
        text.set(ha="right", rotation_mode="anchor", fontsize=6.5)
