"""Figure: attention by itself below the roofs, over growing lengths, forward and backward."""

from matplotlib.figure import Figure

from stepscope.figures import colours, theme
from stepscope.figures.attention.lines import MARKERS, label
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
from stepscope.report.data.attention import DIRECTIONS, implementation_rank
from stepscope.report.data.roofline import Point, attention_groups, attention_points, fullest_d_head, groups, roofs
from stepscope.report.kit.formatting import listing
from stepscope.report.kit.order import machine_labels, ordered

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
    figure, axes = theme.panels(len(rows), len(DIRECTIONS), 2.5, width=4.2)
    for (hardware, precision, own), panels in zip(rows, axes, strict=True):
        d_head, known = fullest_d_head(own), roofs(tables, hardware, precision)
        own = [point for point in own if point.d_head == d_head]
        lines = max(len(lost_lines(_lost([p for p in own if p.phase == each]))) for each in DIRECTIONS)
        across, up = limits(own, [roof for roof in known.values() if roof], lines)
        for direction, panel in zip(DIRECTIONS, panels, strict=True):
            prepare(panel, across, up)
            there = [point for point in own if point.phase == direction]
            place = f"{hardware}, " if len({row[0] for row in rows}) > 1 else ""
            panel.set_title(f"{place}{precision}, d = {d_head}, {direction}")
            draw_roofs(panel, known)
            tell_roofs(panel, known)
            label(panel, _draw_lines(panel, there))
            note(panel, lost_lines(_lost(there)))
    words = "; ".join(dict.fromkeys(settings[row[0]] for row in rows))
    figure.supylabel("TFLOP/s", fontsize=8)
    figure.supxlabel(
        f"arithmetic intensity (FLOP/byte, an upper bound), by length; {words}{left_out(every - len(rows))}", fontsize=8
    )
    handles = roof_handles(roofs(tables, *row[:2]) for row in rows)
    if handles:
        figure.legend(handles=handles, loc="outside upper left", ncols=2)
    return figure


def _draw_lines(panel, points: list[Point]) -> list[tuple[str, float, float, str]]:
    """A line an implementation over the lengths, hollow where doubtful; returns the ends for their labels."""
    ends = []
    for name in ordered([point.series for point in points], key=implementation_rank):
        line = sorted((point for point in points if point.series == name and point.tflops), key=lambda p: p.tokens)
        if not line:
            continue
        look = {"color": colours.attention(name), "marker": MARKERS.get(name, "."), "markersize": 3.2}
        panel.plot([p.intensity for p in line], [p.tflops for p in line], linewidth=0.9, label=name, **look, zorder=2.2)
        doubtful = [point for point in line if point.doubtful]
        hollow = look | {"markerfacecolor": colours.PAPER, "linestyle": "none"}
        panel.plot([p.intensity for p in doubtful], [p.tflops for p in doubtful], zorder=3, **hollow)
        ends.append((theme.short(name, 20), line[-1].intensity, line[-1].tflops, colours.attention_text(name)))
    return ends


def _lost(points: list[Point]) -> dict[str, list[str]]:
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
