"""Figure: the mean and the standard deviation that so many warm-up steps give."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from stepscope.figures import colours, theme
from stepscope.figures.warmup.panels import PHASES, columns_of, drawn, name_row, sizes_of
from stepscope.report.data.warmup import CLOSE, SizeRuns, Warmups
from stepscope.report.kit.formatting import known, percent

MARKERS = {"forward": "o", "backward": "s", "optimizer": "^", "step": "D"}
NEAR_ONE = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0)
QUANTITIES = (("mean_over_steady", 1.0, "mean / steady state"), ("std_over_mean", 100.0, "std / mean (%)"))


def draw_means(tables) -> Figure:
    """Mean over the steady state above standard deviation over the mean, by warm-up steps; a column a size."""
    warmups = Warmups(tables)
    settings = [each for each in drawn(warmups) if any(_lines(point, "mean_over_steady") for point in sizes_of(each))]
    if not settings:
        return theme.empty("No warm-up cell has a steady state to compare with: nothing to draw.")
    rows = [(setting, quantity) for setting in settings for quantity in QUANTITIES]
    figure, axes = theme.panels(len(rows), columns_of(settings), 1.75, sharey="row")
    for (setting, (quantity, scale, words)), row in zip(rows, axes, strict=True):
        points = sizes_of(setting)
        counts = sorted({each["warmup"] for point in points for each in (*point.measured, *point.lost)})
        _height(row[0], [value * scale for point in points for line in _lines(point, quantity).values()
                         for _, value in line], quantity)  # fmt: skip
        row[0].set_ylabel(words)
        for point, panel in zip(points, row, strict=False):
            _draw(panel, point, quantity, scale, counts)
        for panel in row[len(points) :]:
            panel.set_visible(False)
        if quantity == QUANTITIES[0][0]:
            name_row(row, points, warmups, setting, settings)
    figure.supxlabel("warm-up steps before the measured ones", fontsize=8)
    handles = [
        Line2D([], [], color=colours.PHASE[phase], marker=MARKERS[phase], markersize=4, label=phase) for phase in PHASES
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=4)
    return figure


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
    theme.log_axis(panel.yaxis, low, high)
    if quantity == "mean_over_steady" and high < 2:
        panel.yaxis.set_major_locator(FixedLocator(NEAR_ONE))


def _draw(panel, point: SizeRuns, quantity: str, scale: float, counts: list[float]) -> None:
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
            words = f"warm runs differ\nby {percent(point.disagreement)}"
            panel.annotate(words, (0.97, 0.96), xycoords="axes fraction", ha="right",
                           va="top", fontsize=6.5, color=colours.MUTED)  # fmt: skip
        theme.mark_out_of_memory(panel, [(places[row["warmup"]], colours.PHASE["step"]) for row in point.lost])
    panel.set_xlim(-0.35, max(places.values()) + 0.35)
    panel.set_xticks(list(places.values()), [f"{count:,.0f}" for count in counts])
