"""Figures of the warm-up study: means by warm-up steps, time over the step's index, the parts of the first step."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.facets import Facets, above, pick
from stepscope.figures.labels import short, size_name
from stepscope.figures.marks import log_axis, mark_out_of_memory
from stepscope.report.data.warmup import (
    CLOSE,
    Setting,
    SizeRuns,
    Warmups,
    by_step,
    part_excess,
    profiled_excess,
    profiled_points,
)
from stepscope.report.kit.formatting import known, plus_minus, significant
from stepscope.tables.warmup import PARTS

MOST_SETTINGS = 4
MOST_SIZES = 5
PHASES = ("forward", "backward", "optimizer", "step")


def _drawn(warmups: Warmups) -> list[Setting]:
    """The settings that get a row of panels: the first of each machine, then more while there is room."""
    first = [next(each for each in warmups.measured if each.hardware == hardware) for hardware in
             dict.fromkeys(each.hardware for each in warmups.measured)]  # fmt: skip
    rest = [each for each in warmups.measured if each not in first]
    chosen = (first + rest)[:MOST_SETTINGS]
    return [each for each in warmups.measured if each in chosen]


def _sizes_of(setting: Setting) -> list[SizeRuns]:
    """The points that get a panel: those that were measured or ran out of memory."""
    return pick([point for point in setting.points if point.measured or point.lost], MOST_SIZES)


def _facets(rows: list, settings: list[Setting], height: float) -> Facets:
    """A column of panels for each size of the setting that has the most."""
    return Facets(rows, range(max(len(_sizes_of(setting)) for setting in settings)), height, sharey="row")


def _name_row(row: list, points: list[SizeRuns], warmups: Warmups, setting: Setting, settings: list[Setting]) -> None:
    """The size above each panel, and above the first one the setting, where there are several."""
    room = "\n" if len(settings) > 1 else ""
    for point, panel in zip(points, row, strict=False):
        panel.set_title(room + size_name(point.size, point.parameters))
    if room:
        text = above(row[0], _setting_name(warmups, setting), 17, fontsize=8, color=colours.MUTED)
        text.set_in_layout(False)  # else the column would be as wide


def _setting_name(warmups: Warmups, setting: Setting) -> str:
    """`context 128, fp32, batch 4`, with the machine before it where there are several."""
    return (f"{short(setting.hardware, 40)}, " if len(warmups.hardware) > 1 else "") + setting.title


# Means by the number of warm-up steps ---------------------------------------------------------------------------------

MARKERS = {"forward": "o", "backward": "s", "optimizer": "^", "step": "D"}
NEAR_ONE = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0)
QUANTITIES = (("mean_over_steady", 1.0, "mean / steady state"), ("std_over_mean", 100.0, "std / mean (%)"))


def draw_means(tables) -> Figure:
    """Mean over the steady state above standard deviation over the mean, by warm-up steps; a column a size."""
    warmups = Warmups(tables)
    settings = [each for each in _drawn(warmups) if any(_lines(point, "mean_over_steady") for point in _sizes_of(each))]
    if not settings:
        return theme.empty("No warm-up cell has a steady state to compare with: nothing to draw.")
    facets = _facets([(setting, *quantity) for setting in settings for quantity in QUANTITIES], settings, 1.75)
    for (setting, quantity, scale, words), row in facets:
        points = _sizes_of(setting)
        counts = sorted({each["warmup"] for point in points for each in (*point.measured, *point.lost)})
        lines = [line for point in points for line in _lines(point, quantity).values()]
        _height(row[0], [value * scale for line in lines for _, value in line], quantity)
        row[0].set_ylabel(words)
        for point, panel in zip(points, row, strict=False):
            _draw_means(panel, point, quantity, scale, counts)
        for panel in row[len(points) :]:
            panel.set_visible(False)
        if quantity == QUANTITIES[0][0]:
            _name_row(row, points, warmups, setting, settings)
    facets.name_axes(x="warm-up steps before the measured ones")
    handles = [
        Line2D([], [], color=colours.PHASE[phase], marker=MARKERS[phase], markersize=4, label=phase) for phase in PHASES
    ]
    theme.legend(facets.figure, handles, 4)
    return facets.figure


def _lines(point: SizeRuns, quantity: str) -> dict[str, list[tuple[float, float]]]:
    """Phase -> (warm-up steps, value) where there is a value above zero, which a log axis needs."""
    found = {}
    for phase in PHASES:
        values = [(row["warmup"], row.get(f"{phase}_{quantity}")) for row in point.measured]
        line = [(count, value) for count, value in values if known(value) and value > 0]
        found |= {phase: line} if line else {}
    return found


def _height(panel, values: list[float], quantity: str) -> None:
    """A log axis that holds all values, and one where they are ratios."""
    panel.set_yscale("log")
    if not values:
        return
    low, high = min(values), max(values)
    if quantity == "mean_over_steady":
        low, high = min(low, 1 - 2 * CLOSE), max(high, 1 + 4 * CLOSE)
    panel.set_ylim(low / (1.1 if high < 2 * low else 1.3), high * (1.1 if high < 2 * low else 1.3))
    log_axis(panel.yaxis, low, high)
    if quantity == "mean_over_steady" and high < 2:
        panel.yaxis.set_major_locator(FixedLocator(NEAR_ONE))


def _draw_means(panel, point: SizeRuns, quantity: str, scale: float, counts: list[float]) -> None:
    """One size's lines over the numbers of warm-up steps, evenly spaced."""
    places = {count: place for place, count in enumerate(counts)}
    for phase, line in _lines(point, quantity).items():
        x, y = [places[count] for count, _ in line], [scale * value for _, value in line]
        wide = 1.6 if phase == "step" else 1.0
        panel.plot(x, y, color=colours.PHASE[phase], marker=MARKERS[phase], markersize=3.2, linewidth=wide, label=phase)
    if quantity == "mean_over_steady":
        panel.axhspan(1 - CLOSE, 1 + CLOSE, color=colours.SHADE, zorder=0, linewidth=0)
        panel.axhline(1, color=colours.MUTED, linewidth=0.7, zorder=1)
        if not point.is_settled:
            words = f"steady state\n{plus_minus(point.width)}" if point.width is not None else "one steady\nprocess"
            panel.annotate(words, (0.97, 0.96), xycoords="axes fraction", ha="right",
                           va="top", fontsize=6.5, color=colours.MUTED)  # fmt: skip
        mark_out_of_memory(panel, [(places[row["warmup"]], colours.PHASE["step"]) for row in point.lost])
    panel.set_xlim(-0.35, max(places.values()) + 0.35)
    panel.set_xticks(list(places.values()), [f"{count:,.0f}" for count in counts])


# Time over the step's index -------------------------------------------------------------------------------------------

MOST_STEPS = 60


def draw_steps(tables) -> Figure:
    """Median time (ms) of each phase over the step's index, a band over the processes, a panel a size."""
    warmups = Warmups(tables)
    settings = _drawn(warmups)
    found = {id(point): by_step(warmups.samples(point)) for setting in settings for point in _sizes_of(setting)}
    if not any(len(steps) for steps in found.values()):
        return theme.empty("No warm-up cell has been measured: nothing to draw.")
    facets = _facets(settings, settings, 2.3)
    for setting, row in facets:
        points = _sizes_of(setting)
        own = [found[id(point)] for point in points]
        low = min(steps["low"].min() for steps in own if len(steps))
        high = max(steps["high"].max() for steps in own if len(steps))
        row[0].set_yscale("log")
        row[0].set_ylim(low / 1.4, high * 1.4)
        log_axis(row[0].yaxis, low, high)
        row[0].set_ylabel("time (ms, log scale)")
        for point, steps, panel in zip(points, own, row, strict=False):
            _draw_steps(panel, point, steps)
        for panel in row[len(points) :]:
            panel.set_visible(False)
        _name_row(row, points, warmups, setting, settings)
    facets.name_axes(x="index of the step, the process's first is 0")
    handles = [Line2D([], [], color=colours.PHASE[phase], marker=".", label=phase) for phase in PHASES]
    handles.append(Line2D([], [], color=colours.PHASE["step"], linestyle=(0, (1, 2)), label="steady step"))
    theme.legend(facets.figure, handles, 5 if len(facets.columns) > 1 else 3)
    return facets.figure


def _draw_steps(panel, point: SizeRuns, found) -> None:
    """One size's lines; the band spans the processes that ran the step."""
    if found.empty:
        mark_out_of_memory(panel, [(0, colours.PHASE["step"])] * bool(point.lost))
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


# The first step -------------------------------------------------------------------------------------------------------

MOST_BARS = 12
ROOM = 0.075  # share of the width that a bar's part needs to hold a number


def draw_first_step(tables) -> Figure:
    """Stacked bars of first less steady (ms) by part, a bar a size; a diamond where no profiler ran."""
    warmups = Warmups(tables)
    settings = [each for each in _drawn(warmups) if profiled_points(each)]
    if not settings:
        return theme.empty("No first step has been profiled: nothing to draw.")
    bars = [(profiled_points(setting) + _lost(setting))[:MOST_BARS] for setting in settings]
    most = max(map(len, bars))
    facets = Facets(settings, [0], 0.5 + 0.3 * most, width=theme.WIDTH)
    for points, (setting, (panel,)) in zip(bars, facets, strict=True):
        _draw_parts(panel, points, most)
        if len(settings) > 1:
            panel.set_title(_setting_name(warmups, setting), color=colours.MUTED, fontweight="normal")
    facets.axes[-1][0].set_xlabel("first − steady step (ms)")
    drawn_parts = [
        part for part in PARTS if any(part_excess(point.profiled, part) for points in bars for point in points)
    ]
    handles = [Patch(color=colours.first_step(part), label=part) for part in drawn_parts]
    handles.append(
        Line2D([], [], color=colours.INK, marker="D", linestyle="none", markersize=4, label="without a profiler")
    )
    theme.legend(facets.figure, handles, 4)
    return facets.figure


def _lost(setting: Setting) -> list[SizeRuns]:
    """The points whose profiled process ran out of memory."""
    return [point for point in setting.points if point.profiled and point.profiled["status"] == "oom"]


def _draw_parts(panel, points: list[SizeRuns], most: int) -> None:
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
    panel.set_yticks(range(len(points)), [short(point.size, 14) for point in points])
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


FIGURES = {
    "warmup_means": draw_means,
    "warmup_steps": draw_steps,
    "warmup_first_step": draw_first_step,
}
