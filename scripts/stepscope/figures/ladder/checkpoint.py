"""Figure: peak memory with a checkpoint every k blocks, over k and over the time of a step."""

from matplotlib.figure import Figure

from stepscope.figures import colours, theme
from stepscope.figures.ladder.data import are_several, title
from stepscope.figures.memory.data import unit
from stepscope.figures.profile.data import left_out, tick
from stepscope.report.data.ladder import Recomputed, every, ladders, peak, recomputed, time, whole_peak
from stepscope.report.kit.formatting import fixed, known

MOST = 6
NAN = float("nan")
MEASURED, TOLD = colours.MEMORY["activations"], colours.MUTED


def draw_checkpoint(tables) -> Figure:
    """A row for each group of cells: peak over k on the left, peak over the time of a step on the right."""
    found = [one for one in recomputed(ladders(tables)) if any(peak(row) for row in one.rows)]
    if not found:
        return theme.empty("No cell with checkpointing has been measured: nothing to draw.")
    shown, more = found[:MOST], len(found) - MOST
    figure, axes = theme.panels(len(shown), 2, 1.95, width=4.2)
    several = are_several([one.ladder for one in shown])
    for one, (left, right) in zip(shown, axes, strict=True):
        name, scale = _unit(one)
        _draw_over_k(left, one, scale)
        _draw_over_time(right, one, scale)
        left.set_title(f"{title(one.ladder, several)}, {one.options}")
        left.set_ylabel(f"peak ({name})")
    axes[-1][0].set_xlabel("k: a checkpoint every k blocks; none keeps all")
    axes[-1][1].set_xlabel("time of a step (ms); beside the points: k")
    if more > 0:
        figure.supxlabel(left_out(more).removeprefix("; "), fontsize=8)
    return figure


def _rows(one: Recomputed) -> list[dict]:
    """The cells by k, the one without checkpointing last."""
    return one.rows + [one.base] * (one.base is not None)


def _unit(one: Recomputed) -> tuple[str, float]:
    sizes = [value for row in _rows(one) for value in (peak(row), row.get("predicted_peak_bytes")) if known(value)]
    return unit(max(sizes))


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
    panel.set_ylim(0, top / (1 - theme.room_for_out_of_memory(1 if lost else 0)))
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
    theme.label_lines(panel, ends, gap=0.1)
    theme.mark_out_of_memory(panel, lost)
    panel.set_xticks(range(len(rows)), [_name(row) for row in rows])
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
                   color=colours.PAPER if row is one.base else MEASURED, label=f"k {_name(row)}")  # fmt: skip
    _label_points(panel, [_name(row) + " ~" * bool(row.get("noisy")) for row in rows], points)
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
        heights = theme.spread([places[at][1] for at in members], 0.085)
        right = max(places[at][0] for at in members) + 0.05
        for at, height in zip(members, heights, strict=True):
            x, y = places[at]
            panel.plot([x + 0.012, right - 0.006], [y, height], transform=panel.transAxes, color=colours.MUTED,
                       linewidth=0.5, zorder=1.5)  # fmt: skip
            panel.text(right, height, names[at], transform=panel.transAxes, va="center_baseline", fontsize=7)


def _name(row: dict) -> str:
    return f"{every(row)}" if every(row) else "none"
