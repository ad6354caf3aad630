"""Figure: the ladder itself, the time of a step rung by rung."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stepscope.figures import colours, theme
from stepscope.figures.ladder.data import NOTHING, are_several, drawn, title, trouble, two_columns
from stepscope.figures.profile.data import left_out, tick
from stepscope.report.data.ladder import Ladder, agrees, time
from stepscope.report.kit.formatting import known, significant, times

PHASES = ("forward", "backward", "optimizer")
BAR = 0.175  # inches
GAP = 0.45  # bars between the chain and what stands beside it
BOTH = {"facecolor": colours.SHADE, "edgecolor": colours.MUTED, "linewidth": 0.6, "hatch": "////"}


def draw_steps(tables) -> Figure:
    """Bars of the phases stacked, a bar a rung, a panel a ladder; the tick is the free step."""
    shown, more = drawn(tables, lambda one: any(time(row) for row in one.rows))
    if not shown:
        return theme.empty(NOTHING)
    most = max(len(_rows(one)) for one in shown)
    figure, panels = two_columns(len(shown), 0.5 + BAR * max(most, 3))
    several = are_several(shown)
    for one, panel in zip(shown, panels, strict=True):
        _draw(panel, one)
        panel.set_title(title(one, several))
    rows = [row for one in shown for row in _rows(one)]
    handles = [Patch(color=colours.PHASE[name], linewidth=0, label=name) for name in PHASES]
    look = {"color": colours.PHASE["step"], "linestyle": "none", "marker": "|", "markersize": 8, "markeredgewidth": 1.6}
    handles.append(Line2D([], [], label="free step", **look))
    if any(not time(row, "step") and time(row, "forward_backward") for row in rows):
        handles.append(Patch(label="forward+backward, no step", **BOTH))
    figure.legend(handles=handles, loc="outside upper left", ncols=5, columnspacing=1.2, handlelength=1.4)
    words = "ms; beside the bar: the free step and its gain over the rung before"
    words += "; below the gap: over the rung that it varies" * any(one.wholes for one in shown)
    figure.supxlabel(f"{words}{left_out(more)}", fontsize=8)
    return figure


def _rows(one: Ladder) -> list[dict]:
    return [*one.rungs, *one.wholes]


def _draw(panel, one: Ladder) -> None:
    rows = _rows(one)
    places = [at + GAP * (at >= len(one.rungs)) for at in range(len(rows))]
    longest = max(_length(row) for row in rows)
    panel.set_xlim(0, 1.36 * longest)
    for place, row in zip(places, rows, strict=True):
        _draw_bar(panel, place, row)
        panel.annotate(_text(one, row), (_length(row), place), (3, 0), textcoords="offset points", va="center_baseline",
                       fontsize=6.5, color=colours.INK if time(row, "step") else colours.MUTED)  # fmt: skip
    panel.set_yticks(places, [theme.short(row["name"], 26) for row in rows])
    panel.set_ylim(places[-1] + 0.6, -0.6)
    panel.grid(False, axis="y")
    panel.tick_params(axis="y", length=0)
    panel.locator_params(axis="x", nbins=6)
    panel.xaxis.set_major_formatter(tick)


def _draw_bar(panel, place: float, row: dict) -> None:
    step, left = time(row, "step"), 0.0
    if not step and time(row, "forward_backward"):
        panel.barh(place, time(row, "forward_backward"), height=0.72, label="forward+backward", **BOTH)
        return
    parts = [(name, time(row, name)) for name in PHASES] if step else []
    for name, value in parts:
        if value:
            panel.barh(place, value, left=left, height=0.72, color=colours.PHASE[name], linewidth=0, label=name)
            left += value
    if step:
        panel.plot([step, step], [place - 0.46, place + 0.46], color=colours.PHASE["step"], linewidth=1.6,
                   solid_capstyle="butt", label="free step", zorder=3)  # fmt: skip


def _length(row: dict) -> float:
    """Where the bar ends (ms)."""
    step = time(row, "step")
    if not step:
        return time(row, "forward_backward") or 0.0
    return max(step, sum(time(row, name) or 0.0 for name in PHASES))


def _text(one: Ladder, row: dict) -> str:
    """`10.0, × 1.50`, with the rung that it is over where that is not the one above; or why there is no step."""
    median = time(row, "step") or time(row, "forward_backward")
    gain = times(row["gain_before"]) if known(row.get("gain_before")) else ""
    if gain and row.get("gain_of") == "forward+backward":
        gain = f"f+b {gain}"
    if gain and one.is_passed_over(row):
        gain += f" over {theme.short(one.at(row['compared_with'])['name'], 16)}"
    marks = ["~"] * bool(row.get("noisy")) + ["differs: no rung"] * (agrees(row) is False)
    marks += [trouble(row)] if not time(row, "step") else []
    marks += ["throttled"] * bool(row.get("throttle"))
    return ", ".join(filter(None, [significant(median) if median else "", gain, *marks]))
