"""Figure: the arithmetic rate over the rungs, below the peak of each rung's precision."""

from matplotlib.figure import Figure

from stepscope.figures import colours, theme
from stepscope.figures.ladder.data import NOTHING, drawn
from stepscope.figures.profile.data import left_out
from stepscope.report.data.ladder import Ladder, agrees, by_hardware, rate, time
from stepscope.report.kit.formatting import known, percent

MOST_HARDWARE = 3
# One colour a ladder; a ladder is no precision, phase or category, whose colours mean something else.
LOOKS = ((colours.INK, "solid"), (colours.MUTED, "solid"), (colours.INK, (0, (5, 1.5))), (colours.MUTED, (0, (5, 1.5))),
         (colours.INK, (0, (1.5, 1.5))), (colours.MUTED, (0, (1.5, 1.5))), (colours.INK, (0, (7, 1.5, 1.5, 1.5))),
         (colours.MUTED, (0, (7, 1.5, 1.5, 1.5))))  # fmt: skip


def draw_rates(tables) -> Figure:
    """TFLOP/s over the rungs, a line a ladder, a panel a machine."""
    shown, more = drawn(tables, lambda one: any(known(rate(row, "tflops")) for row in one.rungs))
    if not shown:
        return theme.empty(NOTHING)
    machines = list(by_hardware(shown).items())[:MOST_HARDWARE]
    figure, axes = theme.panels(len(machines), 1, 3.0 if len(machines) == 1 else 2.5, width=8.4)
    for (hardware, found), (panel,) in zip(machines, axes, strict=True):
        _draw(panel, found)
        panel.set_title(theme.short(hardware, 60) if len(machines) > 1 else "")
        panel.set_ylabel("TFLOP/s (log scale)")
    words = "rungs in their order; beside a line its size and context"
    words += " and the MFU of its last rung" * any(known(rate(row, "mfu")) for one in shown for row in one.rungs)
    figure.supxlabel(f"{words}{left_out(more)}", fontsize=8)
    return figure


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


def _draw(panel, found: list[Ladder]) -> None:
    names = names_of(found)
    rows = [row for one in found for row in one.rungs]
    rates = [rate(row, "tflops") for row in rows if known(rate(row, "tflops"))]
    peaks = _peaks(rows, names)
    low, high = min(rates) / 1.6, max([*rates, *peaks.values()]) * 1.5
    panel.set_yscale("log")
    panel.set_ylim(low, high)
    theme.log_axis(panel.yaxis, low, high)
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
        text = f"{theme.short(one.size, 10)}, {one.context:,.0f}" + (f": {percent(mfu)}" if mfu is not None else "")
        ends.append((text, x[-1], y[-1], colour))
    last = len(names) - 1
    theme.label_lines(panel, [end for end in ends if end[1] == last], gap=0.06)
    for text, x, y, colour in ends:
        if x < last:
            panel.annotate(text, (x, y), (7, 0), textcoords="offset points", va="center", fontsize=7.5, color=colour)
    _mark_lost(panel, found, names)


def _broken(name: str) -> str:
    """A name on two lines."""
    first, _, rest = theme.short(name, 26).partition(" ")
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
