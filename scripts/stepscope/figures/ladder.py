"""Figures of the ladder study: the time of a step rung by rung, the rate over the rungs, checkpointing."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stepscope import colours
from stepscope.axes import STEP_PHASES as PHASES
from stepscope.figures import theme
from stepscope.figures.facets import Facets, pick, wrapped
from stepscope.figures.labels import byte_unit, omitted, short, size_name, tick, trouble
from stepscope.figures.marks import (
    bar_axis,
    label_lines,
    log_axis,
    mark_out_of_memory,
    room_for_out_of_memory,
    spread,
    stack,
)
from stepscope.report.data.ladder import (
    Ladder,
    Recomputed,
    agrees,
    by_hardware,
    every,
    ladders,
    peak,
    rate,
    recomputed,
    time,
    whole_peak,
)
from stepscope.report.kit.compare import interval_text
from stepscope.report.kit.formatting import fixed, known, percent, significant, times

NOTHING = "No rung of the ladder has been measured: nothing to draw."
MOST_LADDERS = 8


def _drawn(tables, keep) -> tuple[list[Ladder], int]:
    """The ladders for which `keep` is true, at most MOST_LADDERS of them, and how many are left out."""
    found = [one for one in ladders(tables) if keep(one)]
    shown = pick(found, MOST_LADDERS)
    return shown, len(found) - len(shown)


def _title(one: Ladder, several: bool) -> str:
    """`small · 129M, context 128`, the hardware above it where there are several."""
    name = f"{size_name(one.size, one.parameters)}, context {one.context:,.0f}"
    return f"{short(one.hardware, 40)}\n{name}" if several else name


def _are_several(shown: list[Ladder]) -> bool:
    """Whether the ladders are of several machines."""
    return len({one.hardware for one in shown}) > 1


# Steps ----------------------------------------------------------------------------------------------------------------

BAR = 0.175  # inches
GAP = 0.45  # bars between the chain and what stands beside it
BOTH = {"facecolor": colours.SHADE, "edgecolor": colours.MUTED, "linewidth": 0.6, "hatch": "////"}


def draw_steps(tables) -> Figure:
    """Bars of the phases stacked, a bar a rung, a panel a ladder; the tick is the free step."""
    shown, more = _drawn(tables, lambda one: any(time(row) for row in one.rows))
    if not shown:
        return theme.empty(NOTHING)
    most = max(len(_bars(one)) for one in shown)
    facets, panels, spare = wrapped(len(shown), 2, 0.5 + BAR * max(most, 3), width=4.2)
    for panel in spare:
        panel.set_axis_off()
    several = _are_several(shown)
    for one, panel in zip(shown, panels, strict=True):
        _draw_rungs(panel, one)
        panel.set_title(_title(one, several))
    rows = [row for one in shown for row in _bars(one)]
    handles = [Patch(color=colours.PHASE[name], linewidth=0, label=name) for name in PHASES]
    look = {"color": colours.PHASE["step"], "linestyle": "none", "marker": "|", "markersize": 8, "markeredgewidth": 1.6}
    handles.append(Line2D([], [], label="free step", **look))
    if any(not time(row, "step") and time(row, "forward_backward") for row in rows):
        handles.append(Patch(label="forward+backward, no step", **BOTH))
    theme.legend(facets.figure, handles, 5, columnspacing=1.2, handlelength=1.4)
    words = "ms; beside the bar: the free step and its gain over the rung before"
    words += "; below the gap: over the rung that it varies" * any(one.wholes for one in shown)
    facets.name_axes(x=words, more=more)
    return facets.figure


def _bars(one: Ladder) -> list[dict]:
    return [*one.rungs, *one.wholes]


def _draw_rungs(panel, one: Ladder) -> None:
    rows = _bars(one)
    places = [at + GAP * (at >= len(one.rungs)) for at in range(len(rows))]
    longest = max(_length(row) for row in rows)
    panel.set_xlim(0, 1.6 * longest)  # room for the gain and its interval beside the longest bar
    for place, row in zip(places, rows, strict=True):
        _draw_bar(panel, place, row)
        panel.annotate(_text(one, row), (_length(row), place), (3, 0), textcoords="offset points", va="center_baseline",
                       fontsize=6.5, color=colours.INK if time(row, "step") else colours.MUTED)  # fmt: skip
    bar_axis(panel, places, [short(row["name"], 26) for row in rows])
    panel.set_ylim(places[-1] + 0.6, -0.6)
    panel.locator_params(axis="x", nbins=6)
    panel.xaxis.set_major_formatter(tick)


def _draw_bar(panel, place: float, row: dict) -> None:
    """The phases, and a tick at the free step; one hatched bar where there is no step."""
    step = time(row, "step")
    if not step and time(row, "forward_backward"):
        panel.barh(place, time(row, "forward_backward"), height=0.72, label="forward+backward", **BOTH)
        return
    if step:
        stack(panel, place, [(time(row, name) or 0.0, colours.PHASE[name]) for name in PHASES], height=0.72)
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
    judged = one.over_before.get(row["cell"])
    if gain and judged:
        gain = " ".join(filter(None, [gain, interval_text(judged)]))
    if gain and row.get("gain_of") == "forward+backward":
        gain = f"f+b {gain}"
    if gain and one.is_passed_over(row):
        gain += f" over {short(one.at(row['compared_with'])['name'], 16)}"
    marks = ["~"] * bool(row.get("noisy")) + ["differs: no rung"] * (agrees(row) is False)
    marks += [trouble(row)] if not time(row, "step") else []
    marks += ["throttled"] * bool(row.get("throttle"))
    return ", ".join(filter(None, [significant(median) if median else "", gain, *marks]))


# Rates ----------------------------------------------------------------------------------------------------------------

MOST_HARDWARE = 3
# One colour a ladder; a ladder is no precision, phase or category, whose colours mean something else.
LOOKS = ((colours.INK, "solid"), (colours.MUTED, "solid"), (colours.INK, (0, (5, 1.5))), (colours.MUTED, (0, (5, 1.5))),
         (colours.INK, (0, (1.5, 1.5))), (colours.MUTED, (0, (1.5, 1.5))), (colours.INK, (0, (7, 1.5, 1.5, 1.5))),
         (colours.MUTED, (0, (7, 1.5, 1.5, 1.5))))  # fmt: skip


def draw_rates(tables) -> Figure:
    """TFLOP/s over the rungs, a line a ladder, a panel a machine."""
    shown, more = _drawn(tables, lambda one: any(known(rate(row, "tflops")) for row in one.rungs))
    if not shown:
        return theme.empty(NOTHING)
    machines = list(by_hardware(shown).items())[:MOST_HARDWARE]
    facets = Facets(machines, [0], 3.0 if len(machines) == 1 else 2.5, width=8.4)
    for (hardware, found), (panel,) in facets:
        _draw_rates(panel, found)
        panel.set_title(short(hardware, 60) if len(machines) > 1 else "")
        panel.set_ylabel("TFLOP/s (log scale)")
    words = "rungs in their order; beside a line its size and context"
    words += " and the MFU of its last rung" * any(known(rate(row, "mfu")) for one in shown for row in one.rungs)
    facets.name_axes(x=words, more=more)
    return facets.figure


def names_of(found: list[Ladder]) -> list[str]:
    """The rungs' names in an order that keeps that of each ladder, as far as they agree."""
    names: list[str] = []
    for one in sorted(found, key=lambda one: -len(one.rungs)):
        at = 0
        for row in one.rungs:
            name = str(row["name"])
            if name in names:
                at = names.index(name) + 1
            else:
                names.insert(at, name)
                at += 1
    return names


def _draw_rates(panel, found: list[Ladder]) -> None:
    """A line a ladder over the rungs; hollow without a step."""
    names = names_of(found)
    rows = [row for one in found for row in one.rungs]
    rates = [rate(row, "tflops") for row in rows if known(rate(row, "tflops"))]
    peaks = _peaks(rows, names)
    low, high = min(rates) / 1.6, max([*rates, *peaks.values()]) * 1.5
    panel.set_yscale("log")
    panel.set_ylim(low, high)
    log_axis(panel.yaxis, low, high)
    panel.set_xlim(-0.4, len(names) - 0.6)
    panel.set_xticks(range(len(names)), [_broken(name) for name in names])
    panel.grid(False, axis="x")
    _draw_peaks(panel, peaks, rows)
    ends = []
    for one, (colour, dashes) in zip(found, LOOKS, strict=False):
        points = [(names.index(str(row["name"])), row) for row in one.rungs if known(rate(row, "tflops"))]
        points = [(x, row) for x, row in points if agrees(row) is not False]
        if not points:
            continue
        x, y = [x for x, _ in points], [rate(row, "tflops") for _, row in points]
        panel.plot(x, y, color=colour, linestyle=dashes, label=one.place)
        faces = [colour if time(row, "step") else colours.PAPER for _, row in points]
        panel.scatter(x, y, s=16, c=faces, edgecolors=colour, linewidths=1, zorder=3)
        for place, row in points:
            if row.get("noisy"):
                panel.annotate("~", (place, rate(row, "tflops")), (0, 4), textcoords="offset points", ha="center",
                               fontsize=7.5, color=colour)  # fmt: skip
        mfu = rate(points[-1][1], "mfu")
        text = f"{short(one.size, 10)}, {one.context:,.0f}" + (f": {percent(mfu)}" if mfu is not None else "")
        ends.append((text, x[-1], y[-1], colour))
    last = len(names) - 1
    label_lines(panel, [end for end in ends if end[1] == last], gap=0.06)
    for text, x, y, colour in ends:
        if x < last:
            panel.annotate(text, (x, y), (7, 0), textcoords="offset points", va="center", fontsize=7.5, color=colour)
    _mark_lost(panel, found, names)


def _broken(name: str) -> str:
    """A name on two lines."""
    first, _, rest = short(name, 26).partition(" ")
    return f"{first}\n{rest}" if rest else first


def _peaks(rows: list[dict], names: list[str]) -> dict[int, float]:
    """Place of a rung → the data sheet's peak in its precision (TFLOP/s)."""
    return {names.index(str(row["name"])): row["peak_tflops"] for row in rows if known(row.get("peak_tflops"))}


def _draw_peaks(panel, peaks: dict[int, float], rows: list[dict]) -> None:
    """A level for each rung, with its precision's colour and name where it begins."""
    precisions = {row["peak_tflops"]: str(row["precision"]) for row in rows if known(row.get("peak_tflops"))}
    before = None
    for x, value in sorted(peaks.items()):
        name = precisions[value]
        panel.plot([x - 0.5, x + 0.5], [value, value], color=colours.precision(name), linewidth=1.6, label="peak",
                   solid_capstyle="butt")  # fmt: skip
        if value != before:
            place = (max(x - 0.45, -0.36), value)
            panel.annotate(f"{name} peak {value:,.0f}", place, (0, 3), textcoords="offset points",
                           fontsize=6.5, color=colours.precision_text(name))  # fmt: skip
        before = value


def _mark_lost(panel, found: list[Ladder], names: list[str]) -> None:
    """Below, which rungs have no rate in a ladder, and why."""
    lost: dict[int, dict[str, int]] = {}
    for one in found:
        for row in one.rungs:
            word = "differs" if agrees(row) is False else "" if known(rate(row, "tflops")) else str(row["status"])
            if word:
                there = lost.setdefault(names.index(str(row["name"])), {})
                there[word] = there.get(word, 0) + 1
    for x, words in lost.items():
        text = "\n".join(f"{count} {'OOM' if word == 'oom' else word}" for word, count in words.items())
        panel.annotate(text, (x, 0.02), xycoords=panel.get_xaxis_transform(), ha="center", va="bottom", fontsize=6.5,
                       color=colours.MUTED)  # fmt: skip


# Checkpointing --------------------------------------------------------------------------------------------------------

MOST_GROUPS = 6
NAN = float("nan")
MEASURED, TOLD = colours.MEMORY["activations"], colours.MUTED


def draw_checkpoint(tables) -> Figure:
    """A row for each group of cells: peak over k on the left, peak over the time of a step on the right."""
    found = [one for one in recomputed(ladders(tables)) if any(peak(row) for row in one.rows)]
    if not found:
        return theme.empty("No cell with checkpointing has been measured: nothing to draw.")
    shown, more = found[:MOST_GROUPS], len(found) - MOST_GROUPS
    facets = Facets(shown, ("k", "time"), 1.95, width=4.2)
    several = _are_several([one.ladder for one in shown])
    for one, (left, right) in facets:
        name, scale = _unit(one)
        _draw_over_k(left, one, scale)
        _draw_over_time(right, one, scale)
        left.set_title(f"{_title(one.ladder, several)}, {one.options}")
        left.set_ylabel(f"peak ({name})")
    left.set_xlabel("k: a checkpoint every k blocks; none keeps all")
    right.set_xlabel("time of a step (ms); beside the points: k")
    if more > 0:
        facets.name_axes(x=omitted(more).removeprefix("; "))
    return facets.figure


def _rows(one: Recomputed) -> list[dict]:
    """The cells by k, the one without checkpointing last."""
    return one.rows + [one.base] * (one.base is not None)


def _unit(one: Recomputed) -> tuple[str, float]:
    sizes = [value for row in _rows(one) for value in (peak(row), row.get("predicted_peak_bytes")) if known(value)]
    return byte_unit(max(sizes))


def _draw_over_k(panel, one: Recomputed, scale: float) -> None:
    rows = _rows(one)
    measured = [(x, whole_peak(row) / scale if whole_peak(row) else NAN) for x, row in enumerate(rows)]
    told = [
        (x, row["predicted_peak_bytes"] / scale) for x, row in enumerate(rows) if known(row["predicted_peak_bytes"])
    ]
    lost = [(x, MEASURED) for x, row in enumerate(rows) if row["status"] == "oom"]
    whole = [y for _, y in measured if y > 0]
    highest = max(whole or [y for _, y in told])
    top = 1.25 * max([highest, *(y for _, y in told if y <= 2.5 * highest)])
    panel.set_ylim(0, top / (1 - room_for_out_of_memory(1 if lost else 0)))
    panel.set_xlim(-0.5, len(rows) - 0.5)
    ends = []
    if told:
        panel.plot(*zip(*told, strict=True), color=TOLD, linestyle=(0, (3, 2)), marker="o", markersize=3.5,
                   markerfacecolor=colours.PAPER, linewidth=1, label="closed form")  # fmt: skip
        ends.append(("closed form" if one.is_of_tensors else "tensors, closed form", *told[-1], TOLD))
    if whole:
        panel.plot(*zip(*measured, strict=True), color=MEASURED, marker="o", label="measured")
        ends.append(("measured" if one.is_of_tensors else "process, measured", len(rows), whole[-1], colours.INK))
    ends = [(name, len(rows) - 0.5, min(y, panel.get_ylim()[1]), colour) for name, _, y, colour in ends]
    label_lines(panel, ends, gap=0.1)
    mark_out_of_memory(panel, lost)
    panel.set_xticks(range(len(rows)), [_k_name(row) for row in rows])
    panel.grid(False, axis="x")
    panel.yaxis.set_major_formatter(tick)
    _note(panel, one, 0.03 if min(y for _, y in [*told, *measured] if y > 0) > 0.3 * panel.get_ylim()[1] else 0.4)


def _note(panel, one: Recomputed, height: float) -> None:
    """The rule's k, and the best found; `height` is a share of the panel's."""
    told, best = one.rows[0].get("predicted_checkpoint"), one.best
    parts = [f"√(n b / a) = {fixed(told, 2)}"] if known(told) else []
    parts += [f"lowest peak found: k = {every(best)}"] if best else []
    panel.annotate("\n".join(parts), (0.02, height), xycoords="axes fraction", fontsize=6.5, color=colours.MUTED,
                   va="bottom")  # fmt: skip


def _draw_over_time(panel, one: Recomputed, scale: float) -> None:
    rows = [row for row in _rows(one) if whole_peak(row) and time(row, "step")]
    points = [(time(row, "step"), whole_peak(row) / scale) for row in rows]
    if not points:
        panel.annotate("no step ran", (0.5, 0.5), xycoords="axes fraction", ha="center", color=colours.MUTED)
        return
    low, high = min(y for _, y in points), max(y for _, y in points)
    margin = 0.2 * max(high - low, 0.05 * high)
    panel.set_ylim(max(0.0, low - margin), high + margin)
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    span = max(last - first, 0.05 * last)
    panel.set_xlim(max(0.0, first - 0.25 * span), last + 0.35 * span)
    for row, (x, y) in zip(rows, points, strict=True):
        panel.plot([x], [y], marker="o", linestyle="none", markersize=4.5, markeredgecolor=MEASURED,
                   color=colours.PAPER if row is one.base else MEASURED, label=f"k {_k_name(row)}")  # fmt: skip
    _label_points(panel, [_k_name(row) + " ~" * bool(row.get("noisy")) for row in rows], points)
    panel.locator_params(axis="both", nbins=6)
    panel.xaxis.set_major_formatter(tick)
    panel.yaxis.set_major_formatter(tick)


def _label_points(panel, names: list[str], points: list[tuple[float, float]]) -> None:
    """Names right of the points; of points near each other moved apart, with a thin line to each."""
    to_axes = panel.transData + panel.transAxes.inverted()
    places = [tuple(to_axes.transform(point)) for point in points]
    columns: dict[int, list[int]] = {}
    for at, (x, _) in enumerate(places):
        columns.setdefault(round(x / 0.15), []).append(at)
    for members in columns.values():
        heights = spread([places[at][1] for at in members], 0.085)
        right = max(places[at][0] for at in members) + 0.05
        for at, height in zip(members, heights, strict=True):
            x, y = places[at]
            panel.plot([x + 0.012, right - 0.006], [y, height], transform=panel.transAxes, color=colours.MUTED,
                       linewidth=0.5, zorder=1.5)  # fmt: skip
            panel.text(right, height, names[at], transform=panel.transAxes, va="center_baseline", fontsize=7)


def _k_name(row: dict) -> str:
    return f"{every(row)}" if every(row) else "none"


FIGURES = {
    "ladder_steps": draw_steps,
    "ladder_rates": draw_rates,
    "ladder_checkpoint": draw_checkpoint,
}
