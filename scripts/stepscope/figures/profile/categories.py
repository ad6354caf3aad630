"""Figure: categories of kernels by phase, small multiples of all cells."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stepscope.figures import colours, theme
from stepscope.figures.profile.data import (
    MOST_ROWS,
    NOTHING,
    PHASES,
    left_out,
    more,
    size_name,
    tick,
    traced,
    trouble,
    words,
)
from stepscope.report.kit.formatting import significant
from stepscope.report.kit.order import ordered, precision_rank


def draw_categories(tables) -> Figure:
    """Stacked bars of categories by phase, a row of panels for each size and context, a column a precision."""
    cells, times = traced(tables)
    if cells.empty:
        return theme.empty(NOTHING)
    rows = list(cells.groupby(["hardware", "size", "context", "options", "mode"], sort=False))
    more_rows, rows = len(rows) - MOST_ROWS, rows[:MOST_ROWS]
    precisions = ordered(cells["precision"], key=precision_rank)
    phases = {key: [name for name in PHASES if any((cell, name) in times for cell in own["cell"])] for key, own in rows}
    heights = [0.36 + 0.17 * max(len(found), 1) for found in phases.values()]
    width = 4.2 if len(precisions) > 1 else 6.4
    figure, axes = theme.panels(
        len(rows),
        len(precisions),
        sum(heights) / len(rows),
        width=width,
        height_ratios=[max(len(found), 1) + 0.1 for found in phases.values()],
    )
    several = cells["hardware"].nunique() > 1
    for (key, own), line in zip(rows, axes, strict=True):
        hardware, _, context, _, _ = key
        longest = max((sum(times.get((cell, name), {}).values()) for cell in own["cell"] for name in PHASES), default=0)
        for precision, panel in zip(precisions, line, strict=True):
            found = own[own["precision"] == precision].to_dict("records")
            _draw_categories(panel, found[0] if found else None, times, phases[key], longest)
        first = own.iloc[0]
        name = f"{size_name(first)}, context {context:,.0f}{more(first)}"
        line[0].set_title(f"{theme.short(hardware, 28)}: {name}" if several else name, fontsize=7.5)
        for panel in line[1:]:
            panel.tick_params(axis="y", labelleft=False)
    for precision, panel in zip(precisions, axes[0], strict=True):
        panel.set_title(precision, loc="right", color=colours.precision_text(precision))
    drawn = {name for found in times.values() for name, spent in found.items() if spent > 0}
    handles = [Patch(color=colour, label=name) for name, colour in colours.CATEGORY.items() if name in drawn]
    figure.legend(handles=handles, loc="outside upper left", ncols=min(len(handles), 6))
    figure.supxlabel(words(cells, "GPU time", "time in operators") + f" (ms per step){left_out(more_rows)}", fontsize=8)
    return figure


def _draw_categories(panel, cell: dict | None, times: dict, phases: list[str], longest: float) -> None:
    panel.grid(False, axis="y")
    panel.tick_params(axis="y", length=0)
    panel.set_xlim(0, (longest or 1) * 1.13)
    panel.set_yticks(range(len(phases)), phases)
    panel.set_ylim(max(len(phases), 1) - 0.45, -0.55)
    panel.locator_params(axis="x", nbins=5)
    panel.xaxis.set_major_formatter(tick)
    if cell is None:
        panel.set_axis_off()
        return
    if not any((cell["cell"], phase) in times for phase in phases):
        text = trouble(cell) or "no trace"
        panel.text(0.01, 0.5, text, transform=panel.transAxes, va="center", fontsize=7, color=colours.MUTED)
    for place, phase in enumerate(phases):
        _stacked_bar(panel, place, times.get((cell["cell"], phase), {}), longest)


def _stacked_bar(panel, place: float, times: dict[str, float], longest: float) -> None:
    """One phase's categories, its total beside it (ms per step)."""
    left = 0.0
    for name in colours.CATEGORY:
        spent = times.get(name, 0.0)
        if spent > 0:
            panel.barh(place, spent, left=left, height=0.78, color=colours.category(name), linewidth=0)
            left += spent
    if left:
        panel.text(left + 0.012 * longest, place, significant(left), va="center", fontsize=6.5)
