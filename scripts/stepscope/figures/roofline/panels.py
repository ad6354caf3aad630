"""A roofline panel: the roofs with their ridges, both axes log, and the limits that hold points and roofs."""

from collections.abc import Iterable

from matplotlib.lines import Line2D

from stepscope.figures import colours, theme
from stepscope.report.data.roofline import Point, Roof
from stepscope.report.kit.formatting import significant

MOST_MACHINES = 4
MOST_NAMED = 3
STYLES = {
    "measured": {"color": colours.INK, "linewidth": 1.2, "linestyle": "solid"},
    "data sheet": {"color": colours.MUTED, "linewidth": 1.0, "linestyle": (0, (4, 2))},
}
_WIDER = 1.8  # times the outermost intensity
_SMALL = {"fontsize": 6.2, "annotation_clip": False}


def limits(
    points: Iterable[Point], roofs: Iterable[Roof], lines: int = 0
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


def prepare(panel, across: tuple[float, float], up: tuple[float, float]) -> None:
    """Both axes log, with these limits."""
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(*across)
    panel.set_ylim(*up)
    theme.log_axis(panel.xaxis, *across)
    theme.log_axis(panel.yaxis, *up)


def roof_handles(roofs: Iterable[dict[str, Roof | None]]) -> list[Line2D]:
    """Entries of a legend for the roofs that any panel has."""
    known = {name for pair in roofs for name, roof in pair.items() if roof}
    return [Line2D([], [], label=f"roof, {name}", **style) for name, style in STYLES.items() if name in known]


def draw_roofs(panel, roofs: dict[str, Roof | None]) -> None:
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


def tell_roofs(panel, roofs: dict[str, Roof | None]) -> None:
    """The roofs' numbers in the upper left corner, which no point can reach."""
    for rank, (name, roof) in enumerate(roofs.items()):
        numbers = f"{significant(roof.rate)} TFLOP/s, {significant(roof.bandwidth)} GB/s" if roof else "unknown"
        text = panel.annotate(f"{name}: {numbers}", (0, 1), (3, -3 - 8 * rank), xycoords="axes fraction", va="top",
                              textcoords="offset points", color=STYLES[name]["color"], **_SMALL)  # fmt: skip
        text.set_in_layout(False)


def lost_lines(lost: dict[str, list[str]]) -> list[str]:
    """status -> names of what has no rate, as lines: a few of the names each."""
    lines = []
    for status, names in lost.items():
        shown = names[:MOST_NAMED]
        lines += [f"{'OOM' if status == 'oom' else status}: {theme.short(name, 40)}" for name in shown]
        lines += [f"and {len(names) - MOST_NAMED:,} more"] if len(names) > MOST_NAMED else []
    return lines


def note(panel, lines: list[str]) -> None:
    """Small words in the lower right corner."""
    for rank, line in enumerate(reversed(lines)):
        text = panel.annotate(line, (1, 0), (-2, 3 + 8 * rank), xycoords="axes fraction", textcoords="offset points",
                              ha="right", va="bottom", color=colours.MUTED, **_SMALL)  # fmt: skip
        text.set_in_layout(False)
