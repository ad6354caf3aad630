"""The figure of page one: where a training step's time goes, a bar a size, a panel a precision."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.facets import Facets
from stepscope.figures.labels import short, size_name
from stepscope.figures.marks import bar_axis, stack
from stepscope.report.data.profile import Profile
from stepscope.report.data.step_parts import PARTS, StepParts, every_step, side_by_side
from stepscope.report.kit.formatting import percent, significant

MOST_PANELS, MOST_SIZES = 3, 8
WIDTH = 4.0  # inches of a panel; they stand below each other, so that a phone shows all of them
LEAST_TOLD = 0.08  # share of a step from which on its number stands in the bar
COLOURS = {
    "products": colours.CATEGORY["matmul"],
    "attention": colours.CATEGORY["softmax forward"],
    "other": colours.CATEGORY["copy/cast"],
    "optimizer": colours.PHASE["optimizer"],
    "idle": colours.RANGE,
}


def draw_page_one(tables) -> Figure:
    """Shares of the unprofiled step as stacked bars, a bar a size; its time with the interval between processes."""
    context, panels = side_by_side(every_step(Profile(tables)))
    if not panels:
        return theme.empty("No whole step of a GPU was both profiled and timed: nothing to draw.")
    shown = [(precision, steps[-MOST_SIZES:]) for precision, steps in list(panels.items())[:MOST_PANELS]]
    bars = [len(steps) for _, steps in shown]
    height = 0.45 + (0.5 + 0.24 * sum(bars)) / len(bars)  # of a row, with its share of the legend
    facets = Facets(shown, [0], height, width=WIDTH, sharex=True, height_ratios=bars)
    for (precision, steps), (panel,) in facets:
        _draw(panel, steps)
        panel.set_ylim(len(steps) - 0.45, -0.55)
        panel.set_title(precision)
    first = shown[0][1][0].row
    fixed = f"{short(first['hardware'], 40)}; context {context:,.0f}, batch {first['batch']:,.0f}"
    facets.name_axes(f"share of the step without a profiler (%); {fixed}", more=len(panels) - len(shown))
    used = [part for part in PARTS if any(getattr(each, part) > 0 for _, steps in shown for each in steps)]
    handles = [Patch(color=COLOURS[part], linewidth=0, label=PARTS[part]) for part in used]
    theme.legend(facets.figure, handles, len(handles), columnspacing=1.2)
    return facets.figure


def _draw(panel, steps: list[StepParts]) -> None:
    """A bar a size, the smallest on top; right of it the step's time."""
    for place, each in enumerate(steps):
        widths = [100 * each.share(part) for part in PARTS]
        ends = stack(panel, place, list(zip(widths, COLOURS.values(), strict=True)))
        for part, left, width in zip(PARTS, ends, widths, strict=False):
            if width >= 100 * LEAST_TOLD:
                ink = colours.INK if part == "idle" else colours.ON_BAR  # the one that a theme recolours
                panel.text(left + width / 2, place, f"{width:.0f}", ha="center", va="center", fontsize=8, color=ink)
        panel.text(102, place, step_text(each), va="center", fontsize=8)
    bar_axis(panel, range(len(steps)), [size_name(each.row["size"], each.row["parameters"]) for each in steps])
    panel.tick_params(labelsize=8)
    panel.set_xlim(0, 100)
    panel.set_xticks(range(0, 101, 25))


def step_text(parts: StepParts) -> str:
    """`179 ms ± 0.4 %`: the step and half its interval between processes; `~179 ms` where it is noisy."""
    step = parts.step
    half = f" ± {percent((step.high - step.low) / 2 / step.median)}" if step.has_interval else ""
    return f"{'~' * step.noisy}{significant(step.median)} ms{half}"


FIGURES = {"page_one": draw_page_one}
