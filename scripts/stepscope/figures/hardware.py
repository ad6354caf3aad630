"""Figure of machines side by side: the speed-up over the baseline by model size."""

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.facets import MOST_PANELS, Facets, pick
from stepscope.figures.labels import short
from stepscope.figures.marks import (
    draw_intervals,
    label_lines,
    mark_out_of_memory,
    raised,
    room_for_out_of_memory,
    size_ticks,
)
from stepscope.report.data.machines import Limits
from stepscope.report.data.own_models import is_own
from stepscope.report.data.points import EXTRA, Grid, Point
from stepscope.report.kit.compare import ratio_text
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import label, ordered

MOST_MACHINES = 4
# The phases drawn of one machine over the baseline, of two, and of more: rows of panels are limited.
SHOWN = {1: ("forward", "backward", "optimizer", "step"), 2: ("optimizer", "step")}
MARKERS = ("o", "s", "^", "D", "v")
REFERENCES = {
    "arithmetic": {"color": colours.INK, "linewidth": 0.9, "linestyle": (0, (5, 2))},
    "memory": {"color": colours.MUTED, "linewidth": 1.1, "linestyle": (0, (1, 1.6))},
}


def draw_speedup(tables) -> Figure:
    """Speed-up over parameters: a row of panels a machine and phase, a column a precision, a line a context."""
    grid = Grid(tables)
    if len(grid.labels) < 2:
        return theme.empty("There is one machine only: nothing to compare." if grid.labels else
                           "No machine has any results: nothing to draw.")  # fmt: skip
    points = _main([point for point in grid.points if known(point.parameters)])
    rows = _rows(grid, points)
    if not rows:
        return theme.empty("No cell has a time on the baseline and on another machine: nothing to draw.")
    precisions = list(dict.fromkeys(point.precision for point in points))
    contexts = pick(ordered([point.context for point in points]), MOST_PANELS)
    points = [point for point in points if point.context in contexts]
    facets = Facets(rows, precisions, 1.75, sharex=True, sharey="row")
    across = [point.parameters for point in points]
    across = min(across) / 1.35, max(across) * 1.35
    for row, panels in facets:
        machine, phase = row["machine"], row["phase"]
        known_limits = {precision: grid.limits(machine, precision) for precision in precisions}
        limits = _limits(grid, points, machine, phase, known_limits.values())
        for precision, panel in zip(precisions, panels, strict=True):
            own = [point for point in points if point.precision == precision]
            panel.set_xscale("log")
            panel.set_xlim(*across)
            _prepare(panel, limits)
            _draw_references(panel, known_limits[precision])
            label_lines(panel, _draw_lines(grid, panel, own, contexts, machine, phase))
        panels[0].set_ylabel(label(phase))
    facets.name_columns(precisions, centred=True)
    if len(grid.others) > 1:
        for machine, row in facets.first_rows("machine").items():
            facets.name_group(row, machine)
    sizes = dict(sorted({point.size: point.parameters for point in points}.items(), key=lambda size: size[1]))
    for panel in facets.axes[-1]:
        size_ticks(panel, {parameters: short(size, 12) for size, parameters in sizes.items()})
    of = f"on {short(grid.others[0], 40)} " if len(grid.others) == 1 else ""
    facets.name_axes(
        x="model size (by parameters, log scale); at the lines: context, tokens",
        y=f"times as fast {of}as on {short(grid.baseline, 40)} (log scale)",
        more=len(grid.others) - len(facets.first_rows("machine")),
    )
    return facets.figure


def _main(points: list[Point]) -> list[Point]:
    """The points of the most frequent batch, mode and options: a figure holds one of each."""
    for name in EXTRA:
        values = [point.value(name) for point in points]
        wanted = "" if name == "options" and "" in values else max(values, key=values.count, default=None)
        points = [point for point in points if point.value(name) == wanted]
    return points


def _rows(grid: Grid, points: list[Point]) -> list[dict]:
    """`machine` and `phase` of each row of panels that has a line."""
    found = {
        machine: [each for each in grid.phases if any(grid.speed(point, machine, each) for point in points)]
        for machine in grid.others
    }
    machines = [machine for machine, phases in found.items() if phases][:MOST_MACHINES]
    shown = SHOWN.get(len(machines), ("step",))
    return [
        {"machine": machine, "phase": phase}
        for machine in machines
        for phase in ([each for each in shown if each in found[machine]] or found[machine][-1:])
    ]


def _limits(grid: Grid, points: list[Point], machine: str, phase: str, known_limits) -> tuple[float, float]:
    """Of a row's y axis: all intervals and ratios, with room for their words and for what ran out of memory."""
    speeds = [speed for point in points if (speed := grid.speed(point, machine, phase))]
    ratios = [ratio for limits in known_limits for ratio in (limits.arithmetic, limits.memory) if ratio]
    low = min([1.0, *ratios, *(speed.low or speed.ratio for speed in speeds)]) / 1.3
    high = max([1.0, *ratios, *(speed.high or speed.ratio for speed in speeds)]) * 1.12
    lost = any(_is_lost(grid, point, machine, phase) for point in points)
    return raised(low, high, 0.2 + (room_for_out_of_memory(1) if lost else 0.0))


def _is_lost(grid: Grid, point: Point, machine: str, phase: str) -> bool:
    """Did the phase run out of memory on one of both machines, and not on the other?"""
    statuses = point.status(grid.baseline, phase), point.status(machine, phase)
    return statuses.count("oom") == 1


def _prepare(panel, limits: tuple[float, float]) -> None:
    """The axis of speed-ups: log to the base of 2, with a line at 1."""
    panel.set_yscale("log", base=2)
    panel.set_ylim(*limits)
    span = limits[1] / limits[0]
    steps = (1.0,) if span > 12 else (1.0, 1.5) if span > 2.5 else (1.0, 1.25, 1.5, 1.75)
    panel.yaxis.set_major_locator(LogLocator(base=2, subs=steps, numticks=12))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:.3g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.axhline(1, color=colours.INK, linewidth=0.6, zorder=1.5)


def _draw_references(panel, known_limits: Limits) -> None:
    """Level lines at the ratios of rates, told in the upper left corner."""
    words = []
    for name, style in REFERENCES.items():
        ratio = getattr(known_limits, name)
        if ratio:
            panel.axhline(ratio, zorder=1.6, label=name, **style)
        dashes = "dashed" if name == "arithmetic" else "dotted"
        words.append(f"{name} × {ratio_text(ratio)} ({dashes})" if ratio else f"{name}: ratio unknown")
    for rank, text in enumerate(words):
        style = {"fontsize": 6.2, "va": "top", "color": colours.MUTED, "annotation_clip": False}
        panel.annotate(text, (0, 1), (3, -2 - 8 * rank), xycoords="axes fraction", textcoords="offset points",
                       **style).set_in_layout(False)  # fmt: skip


def _draw_lines(grid: Grid, panel, points: list[Point], contexts: list, machine: str, phase: str) -> list[tuple]:
    """A line a context with its intervals; returns the ends for their labels."""
    ends, lost = [], {}
    for context, marker in zip(contexts, MARKERS, strict=False):
        own = sorted((point for point in points if point.context == context), key=lambda point: point.parameters)
        colour = colours.precision(own[0].precision) if own else colours.OTHER
        lost |= {point.parameters: colour for point in own if _is_lost(grid, point, machine, phase)}
        timed = [point for point in own if grid.speed(point, machine, phase)]
        if not timed:
            continue
        found = [(point.parameters, grid.speed(point, machine, phase)) for point in timed]
        places = [place for place, _ in found]
        ratios = [speed.ratio for _, speed in found]
        look = {"color": colour, "markersize": 3.2, "linewidth": 0.9, "label": f"{context:,.0f}"}
        _draw_by_kind(panel, places, ratios, [is_own(point.row) for point in timed], look | {"marker": marker})
        ranges = [(speed.low, speed.high) for _, speed in found]
        draw_intervals(panel, places, *zip(*ranges, strict=True), colour)
        ends.append((f"{context:,.0f}", panel.get_xlim()[1], ratios[-1], colours.precision_text(own[0].precision)))
    mark_out_of_memory(panel, list(lost.items()))
    return ends


def _draw_by_kind(panel, places: list[float], ratios: list[float], are_own: list[bool], look: dict) -> None:
    """A line through the sizes; models of one's own beside it as diamonds."""
    kinds = ((False, look), (True, look | {"linestyle": "none", "marker": "D"}))
    for kind, own_look in kinds:
        both = [(place, ratio) for place, ratio, is_it in zip(places, ratios, are_own, strict=True) if is_it is kind]
        if both:
            panel.plot(*zip(*both, strict=True), **own_look)


FIGURES = {"hardware_speedup": draw_speedup}
