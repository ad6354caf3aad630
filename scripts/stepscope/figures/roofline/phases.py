"""Figure: the phases of a training step below the roofs."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator

from stepscope.figures import colours, theme
from stepscope.figures.profile.data import left_out
from stepscope.figures.roofline.panels import (
    MOST_MACHINES,
    draw_roofs,
    limits,
    lost_lines,
    note,
    prepare,
    roof_handles,
    tell_roofs,
)
from stepscope.report.data.roofline import PHASES, Point, Roof, groups, model_points, roofs
from stepscope.report.kit.formatting import significant
from stepscope.report.kit.order import machine_labels, ordered, precision_rank

MARKERS = {"forward": "o", "backward": "s", "optimizer": "D"}
HEIGHTS = (2.7, 1.15)  # inches: of the panels of forward and backward, and of the optimizer's below them


def draw_roofline(tables) -> Figure:
    """TFLOP/s over arithmetic intensity: two rows of panels a machine, products above the optimizer; a precision each.

    The optimizer has panels of its own, since its intensity is hundreds of times lower.
    """
    points = model_points(tables["timing"])
    if not any(point.tflops for point in points):
        return theme.empty("No phase of a training step has been timed: nothing to draw.")
    found = {(hardware, precision): own for hardware, precision, own in groups(points)}
    every = machine_labels(hardware for hardware, _ in found)
    machines = every[:MOST_MACHINES]
    precisions = ordered([precision for _, precision in found], key=precision_rank)
    figure, axes = theme.panels(2 * len(machines), len(precisions), sum(HEIGHTS) / 2,
                                gridspec_kw={"height_ratios": HEIGHTS * len(machines)})  # fmt: skip
    for at, hardware in enumerate(machines):
        for column, precision in enumerate(precisions):
            own = found.get((hardware, precision), [])
            known = roofs(tables, hardware, precision)
            products, optimizer = axes[2 * at][column], axes[2 * at + 1][column]
            lost = lost_lines(_lost(own))
            _draw_panel(products, [point for point in own if point.phase != "optimizer"], known, len(lost))
            _draw_panel(optimizer, [point for point in own if point.phase == "optimizer"], known)
            if products.axison:
                products.set_title(f"{theme.short(hardware, 26)}, {precision}" if len(machines) > 1 else precision)
                tell_roofs(products, known)
                note(products, lost)
    figure.supylabel("TFLOP/s", fontsize=8)
    more = left_out(len(every) - len(machines))
    figure.supxlabel(f"arithmetic intensity (FLOP/byte, an upper bound){more}", fontsize=8)
    handles = _handles(points) + roof_handles(roofs(tables, *key) for key in found)
    figure.legend(handles=handles, loc="outside upper left", ncols=5, columnspacing=1.2, handlelength=2.2)
    return figure


def _draw_panel(panel, points: list[Point], known: dict[str, Roof | None], lines: int = 0) -> None:
    """One panel, with room for so many lines of words; none where nothing has a rate."""
    if not any(point.tflops for point in points):
        panel.set_axis_off()
        return
    is_optimizer = points[0].phase == "optimizer"
    inside = [] if is_optimizer else [roof for roof in known.values() if roof]
    across, up = limits(points, inside, lines)
    if is_optimizer:
        attainable = [roof.attainable(points[0].intensity) for roof in known.values() if roof]
        up = (up[0], 2 * max([up[1], *attainable]))
    prepare(panel, across, up)
    draw_roofs(panel, known)
    _draw_points(panel, points)
    if is_optimizer:
        panel.xaxis.set_major_locator(FixedLocator([points[0].intensity]))
        panel.xaxis.set_major_formatter(FixedFormatter([significant(points[0].intensity)]))


def _handles(points: list[Point]) -> list[Line2D]:
    seen = [phase for phase in PHASES if any(point.phase == phase and point.tflops for point in points)]
    look = {"linewidth": 0.8}
    return [Line2D([], [], color=colours.PHASE[each], marker=MARKERS[each], label=each, **look) for each in seen]


def _draw_points(panel, points: list[Point]) -> None:
    """A line a size and phase over the contexts, hollow where doubtful; the smallest and the largest size are named."""
    sizes = list(dict.fromkeys(point.series for point in points if point.tflops))
    ends = []
    for phase in PHASES:
        for size in sizes:
            line = [point for point in points if (point.phase, point.series) == (phase, size) and point.tflops]
            if not line:
                continue
            look = {"color": colours.PHASE[phase], "marker": MARKERS[phase], "markersize": 3.4}
            places, rates = [point.intensity for point in line], [point.tflops for point in line]
            panel.plot(places, rates, linewidth=0.7, **look, label=f"{phase} {size}", zorder=2.2)
            hollow = look | {"markerfacecolor": colours.PAPER, "linestyle": "none"}
            doubtful = [(point.intensity, point.tflops) for point in line if point.doubtful]
            panel.plot([x for x, _ in doubtful], [y for _, y in doubtful], **hollow, zorder=3)
            if size in (sizes[0], sizes[-1]):
                name = theme.short(size, 12)
                if phase == "optimizer":
                    ends.append((name, places[-1], rates[-1], colours.INK))
                else:
                    _name(panel, name, line, size != sizes[-1])
    theme.label_lines(panel, ends, gap=0.17)


def _name(panel, name: str, line: list[Point], is_smallest: bool) -> None:
    """A size's name: of the smallest below its line, of the largest above it, or right of it in backward."""
    lowest, left = min(line, key=lambda p: p.tflops), min(line, key=lambda p: p.intensity)
    right = max(line, key=lambda p: p.intensity)
    at, offset, across, up = lowest, (0, -3.5), "center", "top"
    if not is_smallest:
        at, offset, across, up = left, (0, 3.5), "center", "bottom"
        if line[0].phase == "backward":
            at, offset, across, up = right, (4, 0), "left", "center"
    panel.annotate(name, (at.intensity, at.tflops), offset, textcoords="offset points", ha=across, va=up, fontsize=6.2,
                   annotation_clip=False)  # fmt: skip


def _lost(points: list[Point]) -> dict[str, list[str]]:
    """status -> `2.7B at 1,024`, with the phases if not all, of what has no result."""
    found: dict[str, dict[str, list[str]]] = {}
    for point in points:
        if point.status != "ok":
            found.setdefault(point.status, {}).setdefault(f"{point.series} at {point.tokens:,}", []).append(point.phase)
    every = {point.phase for point in points}
    return {
        status: [name if set(gone) == every else f"{name} ({', '.join(gone)})" for name, gone in places.items()]
        for status, places in found.items()
    }
