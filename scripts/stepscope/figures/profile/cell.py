"""The figure of one profiled cell: categories by phase, the timeline of a step, the zoom into one attention."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stepscope.figures import colours, theme
from stepscope.figures.profile.data import PHASES, by_category, rows_of, tick, trouble, words
from stepscope.figures.profile.timeline import LABEL_SIZE, LEFT, POINTS, RIGHT, View, text_width
from stepscope.report.kit.formatting import significant

# Inches.
BAR, TITLE, AXIS, BETWEEN = 0.215, 0.24, 0.42, 0.02
LEGEND_ROW, EDGE = 0.17, 0.06
MOST_IN_LEGEND_ROW = 7


def draw_cell(tables, cell: str) -> Figure:
    """Categories by phase, one step and one attention of a cell."""
    row = tables["profile"]
    row = row[row["cell"] == cell].iloc[0]
    name = f"{row['size']}, context {row['context']:,.0f}, {row['precision']}"
    name += f", {row['mode']}" if row.get("mode") not in (None, "step") else ""
    times = {phase: found for (owner, phase), found in by_category(tables).items() if owner == cell}
    timeline = rows_of(tables, "timeline", cell)
    if trouble(row) or not times:
        why = {"OOM": "ran out of memory", "": "left no trace"}.get(trouble(row), trouble(row))
        return theme.empty(f"{name}: {why}. Nothing to draw.")
    what = words(row.to_frame().T, "GPU time by category of kernel", "time in operators by category")
    phases = [phase for phase in PHASES if phase in times]
    views = [View(timeline[timeline["view"] == view], _attention(timeline)) for view in ("step", "attention")]
    views = [view for view in views if view.lanes]
    drawn = _categories(times, timeline)
    handles = _handles(drawn, views)
    legend = EDGE + -(-len(handles) // MOST_IN_LEGEND_ROW) * LEGEND_ROW
    height = legend + TITLE + BAR * len(phases) + AXIS + sum(BETWEEN + TITLE + view.height + AXIS for view in views)
    figure = Figure(figsize=(theme.WIDTH, height))
    top = height - legend - TITLE
    _draw_phases(_axes(figure, top, BAR * len(phases)), times, phases, what)
    top -= BAR * len(phases) + AXIS
    step, zoom = (next((view for view in views if view.name == name), None) for name in ("step", "attention"))
    for view in views:
        top -= BETWEEN + TITLE
        panel = _axes(figure, top, view.height)
        view.draw(panel)
        if view is step and zoom:
            step.frame(panel, zoom)
        panel.set_title(_title(view, row.get("profiler")))
        top -= view.height + AXIS
    _legend(figure, handles)
    return figure


def _attention(timeline: pd.DataFrame) -> str:
    """The label of the range that the view `attention` is of."""
    own = timeline[(timeline["view"] == "attention") & (timeline["lane"] == "ranges 0")]
    return str(own.sort_values("start_us")["label"].iloc[0]) if len(own) else "attention"


def _title(view: View, profiler: str | None) -> str:
    if view.name == "step":
        tool = {"torch": "torch.profiler"}.get(profiler, profiler)
        return "one step" + (f" under {tool}" if tool else "") + f", of median length: {view.length}"
    launched = (
        "" if any(lane == "operators" for lane in view.lanes) else ", until the last kernel that it launched ends"
    )
    return f"the attention of a middle layer{launched}: {view.length}" + (" (framed above)" if view.framed else "")


def _axes(figure: Figure, top: float, height: float):
    """A panel whose top is so many inches above the figure's lower edge."""
    whole_width, whole_height = figure.get_size_inches()
    panel = figure.add_axes(
        (LEFT / whole_width, (top - height) / whole_height, 1 - (LEFT + RIGHT) / whole_width, height / whole_height)
    )
    panel.grid(False, axis="y")
    panel.tick_params(axis="y", length=0)
    return panel


def _categories(times: dict, timeline: pd.DataFrame) -> list[str]:
    """The categories that occur, in their order."""
    there = {name for found in times.values() for name, spent in found.items() if spent > 0}
    there |= set(timeline["category"]) if len(timeline) else set()
    return [name for name in colours.CATEGORY if name in there]


def _handles(categories: list[str], views: list[View]) -> list[Patch]:
    lanes = [lane for view in views for lane in view.lanes]
    handles = [(colours.category(name), name) for name in categories]
    if any(lane.startswith("ranges") for lane in lanes):
        handles += [(colours.RANGE, "named range"), (colours.RANGE_ATTENTION, "attention")]
    if any(lane.startswith("CUDA calls") for lane in lanes):
        handles.append((colours.CALL, "CUDA call"))
    return [Patch(color=colour, linewidth=0, label=name) for colour, name in handles]


def _legend(figure: Figure, handles: list[Patch]) -> None:
    rows = -(-len(handles) // MOST_IN_LEGEND_ROW)
    figure.legend(
        handles=handles,
        loc="upper right",
        bbox_to_anchor=(1 - RIGHT / theme.WIDTH, 1 - EDGE / figure.get_figheight()),
        ncols=-(-len(handles) // rows),
        borderaxespad=0,
        borderpad=0,
        columnspacing=1.2,
        handlelength=1.3,
    )


def _draw_phases(panel, times: dict, phases: list[str], what: str) -> None:
    """Stacked bars, a phase a bar, with shares in the bars and the total beside them."""
    longest = max(sum(times[phase].values()) for phase in phases)
    panel.set_xlim(0, longest * 1.1)
    for place, phase in enumerate(phases):
        left, total = 0.0, sum(times[phase].values())
        for name in colours.CATEGORY:
            spent = times[phase].get(name, 0.0)
            if spent <= 0:
                continue
            panel.barh(place, spent, left=left, height=0.8, color=colours.category(name), linewidth=0)
            text = f"{100 * spent / total:.0f} %"
            if name != "memory set/copy" and spent / panel.get_xlim()[1] * POINTS > text_width(text) + 4:
                look = {"ha": "center", "va": "center_baseline", "fontsize": LABEL_SIZE, "color": colours.ON_BAR}
                panel.text(left + spent / 2, place, text, **look)
            left += spent
        panel.text(left + 0.006 * longest, place, f"{significant(total)} ms", va="center_baseline", fontsize=LABEL_SIZE)
    panel.set_yticks(range(len(phases)), phases)
    panel.set_ylim(len(phases) - 0.5, -0.5)
    panel.xaxis.set_major_formatter(tick)
    panel.set_xlabel("ms per step", labelpad=1)
    panel.set_title(what)
