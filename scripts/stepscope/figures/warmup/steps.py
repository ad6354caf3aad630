"""Figure: time over the step's index, from the first step of the process on."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stepscope.figures import colours, theme
from stepscope.figures.warmup.panels import PHASES, columns_of, drawn, name_row, sizes_of
from stepscope.report.data.warmup import SizeRuns, Warmups, by_step

MOST_STEPS = 60


def draw_steps(tables) -> Figure:
    """Median time (ms) of each phase over the step's index, a band over the processes, a panel a size."""
    warmups = Warmups(tables)
    settings = drawn(warmups)
    found = {id(point): by_step(warmups.samples(point)) for setting in settings for point in sizes_of(setting)}
    if not any(len(steps) for steps in found.values()):
        return theme.empty("No warm-up cell has been measured: nothing to draw.")
    figure, axes = theme.panels(len(settings), columns_of(settings), 2.3, sharey="row")
    for setting, row in zip(settings, axes, strict=True):
        points = sizes_of(setting)
        own = [found[id(point)] for point in points]
        low = min(steps["low"].min() for steps in own if len(steps))
        high = max(steps["high"].max() for steps in own if len(steps))
        row[0].set_yscale("log")
        row[0].set_ylim(low / 1.4, high * 1.4)
        theme.log_axis(row[0].yaxis, low, high)
        row[0].set_ylabel("time (ms, log scale)")
        for point, steps, panel in zip(points, own, row, strict=False):
            _draw(panel, point, steps)
        for panel in row[len(points) :]:
            panel.set_visible(False)
        name_row(row, points, warmups, setting, settings)
    figure.supxlabel("index of the step, the process's first is 0", fontsize=8)
    handles = [Line2D([], [], color=colours.PHASE[phase], marker=".", label=phase) for phase in PHASES]
    handles.append(Line2D([], [], color=colours.PHASE["step"], linestyle=(0, (1, 2)), label="steady step"))
    figure.legend(handles=handles, loc="outside upper left", ncols=5 if len(axes[0]) > 1 else 3)
    return figure


def _draw(panel, point: SizeRuns, found) -> None:
    """One size's lines; the band spans the processes that ran the step."""
    if found.empty:
        theme.mark_out_of_memory(panel, [(0, colours.PHASE["step"])] * bool(point.lost))
        return
    for phase in PHASES:
        line = found[found["phase"] == phase].sort_values("step").head(MOST_STEPS)
        colour = colours.PHASE[phase]
        panel.fill_between(line["step"], line["low"], line["high"], color=colour, alpha=0.3, linewidth=0)
        panel.plot(line["step"], line["median"], color=colour, marker=".", markersize=3.5, linewidth=0.9)
    steady = point.steady("step")
    if steady:
        panel.axhline(steady, color=colours.PHASE["step"], linestyle=(0, (1, 2)), linewidth=0.9, zorder=1.5)
    panel.set_xlim(-0.6, found["step"].max() + 0.6)
    panel.xaxis.get_major_locator().set_params(integer=True)
