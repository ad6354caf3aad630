"""Figure: what the first step takes longer than a steady one, by part."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stepscope.figures import colours, theme
from stepscope.figures.warmup.panels import drawn, setting_name
from stepscope.report.data.warmup import Setting, SizeRuns, Warmups, part_excess, profiled_excess, profiled_points
from stepscope.report.kit.formatting import significant
from stepscope.tables.warmup import PARTS

MOST_BARS = 12
ROOM = 0.075  # share of the width that a bar's part needs to hold a number


def draw_first_step(tables) -> Figure:
    """Stacked bars of first less steady (ms) by part, a bar a size; a diamond where no profiler ran."""
    warmups = Warmups(tables)
    settings = [each for each in drawn(warmups) if profiled_points(each)]
    if not settings:
        return theme.empty("No first step has been profiled: nothing to draw.")
    bars = [(profiled_points(setting) + _lost(setting))[:MOST_BARS] for setting in settings]
    most = max(map(len, bars))
    figure, axes = theme.panels(len(settings), 1, 0.5 + 0.3 * most, width=theme.WIDTH)
    for setting, points, (panel,) in zip(settings, bars, axes, strict=True):
        _draw(panel, points, most)
        if len(settings) > 1:
            panel.set_title(setting_name(warmups, setting), color=colours.MUTED, fontweight="normal")
    axes[-1][0].set_xlabel("first − steady step (ms)")
    drawn_parts = [
        part for part in PARTS if any(part_excess(point.profiled, part) for points in bars for point in points)
    ]
    handles = [Patch(color=colours.first_step(part), label=part) for part in drawn_parts]
    handles.append(
        Line2D([], [], color=colours.INK, marker="D", linestyle="none", markersize=4, label="without a profiler")
    )
    figure.legend(handles=handles, loc="outside upper left", ncols=4)
    return figure


def _lost(setting: Setting) -> list[SizeRuns]:
    """The points whose profiled process ran out of memory."""
    return [point for point in setting.points if point.profiled and point.profiled["status"] == "oom"]


def _draw(panel, points: list[SizeRuns], most: int) -> None:
    """One setting's bars, the smallest size on top; as thick as those of the setting with the most."""
    spans = [_span(point) for point in points]
    width = max(right for _, right in spans) - min(left for left, _ in spans) or 1.0
    for place, point in enumerate(points):
        if profiled_excess(point.profiled) is None:
            panel.text(0.012 * width, place, "OOM", va="center", fontsize=7, color=colours.MUTED)
            continue
        right = left = 0.0
        for part in PARTS:
            value = part_excess(point.profiled, part) or 0.0
            start = right if value >= 0 else left
            panel.barh(place, value, left=start, height=0.66, color=colours.first_step(part))
            if abs(value) > ROOM * width:
                panel.text(start + value / 2, place, significant(value), ha="center", va="center", fontsize=6.5,
                           color=colours.ON_BAR)  # fmt: skip
            right, left = (right + value, left) if value >= 0 else (right, left + value)
        plain = point.excess("step")
        if plain is not None:
            panel.plot([plain], [place + 0.33], "D", color=colours.INK, markersize=4, zorder=3, clip_on=False)
        whole = f"{significant(profiled_excess(point.profiled))} ms"
        whole += f", without a profiler {significant(plain)} ms" if plain is not None else ""
        panel.text(max(right, plain or 0.0) + 0.012 * width, place, whole, va="center", fontsize=7)
    panel.axvline(0, color=colours.MUTED, linewidth=0.7)
    panel.set_xlim(min(left for left, _ in spans) - 0.01 * width, max(right for _, right in spans) + 0.27 * width)
    panel.set_yticks(range(len(points)), [theme.short(point.size, 14) for point in points])
    panel.set_ylim((len(points) + most) / 2 - 0.5, (len(points) - most) / 2 - 0.5)
    panel.xaxis.set_major_formatter(_tick)
    panel.grid(False, axis="y")


def _tick(value: float, _position=None) -> str:
    return f"{value:,g}".replace("-", "\N{MINUS SIGN}")


def _span(point: SizeRuns) -> tuple[float, float]:
    """From where to where a size's bar and diamond reach, ms."""
    values = [part_excess(point.profiled, part) or 0.0 for part in PARTS]
    right = max(sum(value for value in values if value > 0), point.excess("step") or 0.0)
    return sum(value for value in values if value < 0), right
