"""Roofline figures: the phases of a training step, and attention by itself, below the measured and known roofs."""

from collections.abc import Iterable

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.facets import Facets
from stepscope.figures.labels import short
from stepscope.figures.marks import HOLLOW, End, label_inside, label_lines, log_axis, named_ticks
from stepscope.report.data.roofline import (
    PHASES,
    Roof,
    RoofPoint,
    attention_groups,
    attention_points,
    fullest_d_head,
    groups,
    model_points,
    roofs,
)
from stepscope.report.kit.formatting import listing, significant
from stepscope.report.kit.order import machine_labels, ordered, precision_rank

MOST_MACHINES = 4
MOST_NAMED = 3
STYLES = {
    "measured": {"color": colours.INK, "linewidth": 1.2, "linestyle": "solid"},
    "data sheet": {"color": colours.MUTED, "linewidth": 1.0, "linestyle": (0, (4, 2))},
}
_WIDER = 1.8  # times the outermost intensity
_SMALL = {"fontsize": 6.2, "annotation_clip": False}
_X, _Y = "arithmetic intensity (FLOP/byte, an upper bound)", "TFLOP/s"

# The phases of a training step ----------------------------------------------------------------------------------------

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
    rows = [(hardware, part) for hardware in machines for part in ("products", "optimizer")]
    heights = {"height_ratios": HEIGHTS * len(machines)}
    facets = Facets(rows, precisions, sum(HEIGHTS) / 2, gridspec_kw=heights)
    for (hardware, part), panels in facets:
        for precision, panel in zip(precisions, panels, strict=True):
            own = found.get((hardware, precision), [])
            known, lost = roofs(tables, hardware, precision), _lost_lines(_lost_phases(own))
            if part == "optimizer":
                _draw_phases(panel, [point for point in own if point.phase == "optimizer"], known)
                continue
            _draw_phases(panel, [point for point in own if point.phase != "optimizer"], known, len(lost))
            if panel.axison:
                panel.set_title(f"{short(hardware, 26)}, {precision}" if len(machines) > 1 else precision)
                _tell_roofs(panel, known)
                _note(panel, lost)
    facets.name_axes(_X, _Y, more=len(every) - len(machines))
    handles = _phase_handles(points) + _roof_handles(roofs(tables, *key) for key in found)
    look = {"ncols": 5, "columnspacing": 1.2, "handlelength": 2.2}
    theme.legend(facets.figure, handles, **look)
    return facets.figure


def _draw_phases(panel, points: list[RoofPoint], known: dict[str, Roof | None], lines: int = 0) -> None:
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
    _prepare(panel, across, up)
    _draw_roofs(panel, known)
    _draw_sizes(panel, points)
    if is_optimizer:
        named_ticks(panel.xaxis, {points[0].intensity: significant(points[0].intensity)})


def _phase_handles(points: list[RoofPoint]) -> list[Line2D]:
    seen = [phase for phase in PHASES if any(point.phase == phase and point.tflops for point in points)]
    look = {"linewidth": 0.8}
    return [Line2D([], [], color=colours.PHASE[each], marker=MARKERS[each], label=each, **look) for each in seen]


def _draw_sizes(panel, points: list[RoofPoint]) -> None:
    """A line a size and phase over the contexts; the smallest and the largest size are named."""
    sizes = list(dict.fromkeys(point.series for point in points if point.tflops))
    ends = []
    for phase in PHASES:
        for size in sizes:
            line = [point for point in points if (point.phase, point.series) == (phase, size) and point.tflops]
            if not line:
                continue
            look = {"color": colours.PHASE[phase], "marker": MARKERS[phase], "markersize": 3.4}
            _draw_line(panel, line, f"{phase} {size}", look | {"linewidth": 0.7})
            if size in (sizes[0], sizes[-1]):
                if phase == "optimizer":
                    ends.append((short(size, 12), line[-1].intensity, line[-1].tflops, colours.INK))
                else:
                    _name_size(panel, short(size, 12), line, size != sizes[-1])
    label_lines(panel, ends, gap=0.17)


def _name_size(panel, name: str, line: list[RoofPoint], is_smallest: bool) -> None:
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


def _lost_phases(points: list[RoofPoint]) -> dict[str, list[str]]:
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


# Attention by itself --------------------------------------------------------------------------------------------------

DIRECTIONS = ("forward", "backward")
MOST_ROWS = 8


def draw_roofline_attention(tables) -> Figure:
    """TFLOP/s over arithmetic intensity: a row of panels a machine and precision, a column a direction."""
    settings = {group.hardware: group.setting.title for group in attention_groups(tables)}
    points = [point for group in attention_groups(tables) for point in attention_points(group)]
    rows = [row for row in groups(points) if any(point.tflops for point in row[2])]
    if not rows:
        return theme.empty("No pass of attention has been timed: nothing to draw.")
    every = len(rows)
    rows = [row for row in rows if row[0] in machine_labels(row[0] for row in rows)[:MOST_MACHINES]][:MOST_ROWS]
    several = len({row[0] for row in rows}) > 1
    facets = Facets(rows, DIRECTIONS, 2.5, width=4.2)
    for (hardware, precision, own), panels in facets:
        d_head, known = fullest_d_head(own), roofs(tables, hardware, precision)
        own = [point for point in own if point.d_head == d_head]
        lost = {way: _lost_lines(_lost_lengths([p for p in own if p.phase == way])) for way in DIRECTIONS}
        across, up = limits(own, [roof for roof in known.values() if roof], max(map(len, lost.values())))
        for direction, panel in zip(DIRECTIONS, panels, strict=True):
            _prepare(panel, across, up)
            place = f"{hardware}, " if several else ""
            panel.set_title(f"{place}{precision}, d = {d_head}, {direction}")
            _draw_roofs(panel, known)
            _tell_roofs(panel, known)
            label_inside(panel, _draw_implementations(panel, [point for point in own if point.phase == direction]))
            _note(panel, lost[direction])
    words = "; ".join(dict.fromkeys(settings[row[0]] for row in rows))
    facets.name_axes(f"{_X}, by length; {words}", _Y, more=every - len(rows))
    handles = _roof_handles(roofs(tables, *row[:2]) for row in rows)
    if handles:
        theme.legend(facets.figure, handles, 2)
    return facets.figure


def _draw_implementations(panel, points: list[RoofPoint]) -> list[End]:
    """A line an implementation over the lengths; returns the ends for their labels."""
    ends = []
    for name in ordered([point.series for point in points], key=colours.attention_rank):
        line = sorted((point for point in points if point.series == name and point.tflops), key=lambda p: p.tokens)
        if not line:
            continue
        look = {"color": colours.attention(name), "marker": colours.ATTENTION_MARKERS.get(name, "."), "markersize": 3.2}
        _draw_line(panel, line, name, look | {"linewidth": 0.9})
        ends.append((short(name, 20), line[-1].intensity, line[-1].tflops, colours.attention_text(name)))
    return ends


def _lost_lengths(points: list[RoofPoint]) -> dict[str, list[str]]:
    """status -> `naive at 16,384`, or the name alone where no length has a result."""
    found: dict[str, dict[str, list[int]]] = {}
    for point in points:
        if point.status != "ok":
            found.setdefault(point.status, {}).setdefault(point.series, []).append(point.tokens)
    names = [point.series for point in points]
    return {
        status: [
            name if len(gone) == names.count(name) else f"{name} at {listing([f'{each:,}' for each in gone], 2)}"
            for name, gone in lost.items()
        ]
        for status, lost in found.items()
    }


# A roofline panel -----------------------------------------------------------------------------------------------------


def limits(
    points: Iterable[RoofPoint], roofs: Iterable[Roof], lines: int = 0
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits of intensity (FLOP/byte) and rate (TFLOP/s): all points and ridges, with room for words.

    lines: of small words below the points.
    """
    points, roofs = list(points), list(roofs)
    places = [point.intensity for point in points] + [roof.ridge for roof in roofs]
    rates = [point.tflops for point in points if point.tflops] + [roof.rate for roof in roofs]
    left, right = min(places) / _WIDER, max(places) * _WIDER
    low, span = min(rates) / 2, 2 * max(rates) / min(rates)
    return (left, right), (low / span ** (0.07 * lines), max(rates) * span**0.3)


def _prepare(panel, across: tuple[float, float], up: tuple[float, float]) -> None:
    """Both axes log, with these limits."""
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(*across)
    panel.set_ylim(*up)
    log_axis(panel.xaxis, *across)
    log_axis(panel.yaxis, *up)


def _draw_line(panel, line: list[RoofPoint], name: str, look: dict) -> None:
    """Rates over intensities, the marks hollow where the time is doubtful."""
    panel.plot([p.intensity for p in line], [p.tflops for p in line], label=name, zorder=2.2, **look)
    doubtful = [point for point in line if point.doubtful]
    panel.plot([p.intensity for p in doubtful], [p.tflops for p in doubtful], zorder=3, **look | HOLLOW)


def _roof_handles(roofs: Iterable[dict[str, Roof | None]]) -> list[Line2D]:
    """Entries of a legend for the roofs that any panel has."""
    known = {name for pair in roofs for name, roof in pair.items() if roof}
    return [Line2D([], [], label=f"roof, {name}", **style) for name, style in STYLES.items() if name in known]


def _draw_roofs(panel, roofs: dict[str, Roof | None]) -> None:
    """Both roofs, with a ring and the intensity at each ridge that is in view."""
    left, right = panel.get_xlim()
    for name, roof in roofs.items():
        if roof is None:
            continue
        places = [left, *([roof.ridge] if left < roof.ridge < right else []), right]
        panel.plot(places, [roof.attainable(place) for place in places], label=name, zorder=1.8, **STYLES[name])
        if left < roof.ridge < right:
            colour = STYLES[name]["color"]
            ring = {"color": colour, "markerfacecolor": colours.PAPER, "markersize": 3.4, "markeredgewidth": 0.8}
            panel.plot([roof.ridge], [roof.rate], marker="o", linestyle="none", **ring, zorder=2)
            offset, side = ((2, -4), "top") if name == "measured" else ((2, 3), "bottom")
            panel.annotate(f"ridge {significant(roof.ridge)}", (roof.ridge, roof.rate), offset, va=side,
                           textcoords="offset points", color=colour, **_SMALL)  # fmt: skip


def _tell_roofs(panel, roofs: dict[str, Roof | None]) -> None:
    """The roofs' numbers in the upper left corner, which no point can reach."""
    for rank, (name, roof) in enumerate(roofs.items()):
        numbers = f"{significant(roof.rate)} TFLOP/s, {significant(roof.bandwidth)} GB/s" if roof else "unknown"
        text = panel.annotate(f"{name}: {numbers}", (0, 1), (3, -3 - 8 * rank), xycoords="axes fraction", va="top",
                              textcoords="offset points", color=STYLES[name]["color"], **_SMALL)  # fmt: skip
        text.set_in_layout(False)


def _lost_lines(lost: dict[str, list[str]]) -> list[str]:
    """status -> names of what has no rate, as lines: a few of the names each."""
    lines = []
    for status, names in lost.items():
        shown = names[:MOST_NAMED]
        lines += [f"{'OOM' if status == 'oom' else status}: {short(name, 40)}" for name in shown]
        lines += [f"and {len(names) - MOST_NAMED:,} more"] if len(names) > MOST_NAMED else []
    return lines


def _note(panel, lines: list[str]) -> None:
    """Small words in the lower right corner."""
    for rank, line in enumerate(reversed(lines)):
        text = panel.annotate(line, (1, 0), (-2, 3 + 8 * rank), xycoords="axes fraction", textcoords="offset points",
                              ha="right", va="bottom", color=colours.MUTED, **_SMALL)  # fmt: skip
        text.set_in_layout(False)


FIGURES = {"roofline": draw_roofline, "roofline_attention": draw_roofline_attention}
