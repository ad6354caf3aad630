"""Figure of one memory cell: all that is active over the events of the recording, by category.

The timeline is a stacked area of few points: rows that tell most, steps, phases. It is painted from the highest
boundary to the lowest, each over the one before, so that a category needs only its upper boundary; one that does not
change takes two points. So a recording of thousands of events stays a small file.
"""

from itertools import groupby, pairwise

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Polygon, Rectangle

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.labels import GIB, byte_unit, short, size_name, tick, trouble, unusual
from stepscope.figures.marks import beside, label_lines, text_width
from stepscope.figures.memory.data import CATEGORIES, measured, rows_of
from stepscope.report.kit.formatting import known, significant
from stepscope.report.kit.order import column

# Inches.
LEFT, RIGHT, EDGE = 0.62, 1.5, 0.06
LEGEND_ROW, LANE, PANEL, AXIS, TITLE, ENLARGED = 0.2, 0.2, 2.1, 0.42, 0.36, 1.35
POINTS = 72 * (theme.WIDTH - LEFT - RIGHT)  # width of a panel in points
LEGEND_LEFT, HANDLE = 1.12, 26  # inches; points that a handle and the gap after its text take
COARSE = 100  # parts of the axis where the enlarged panel tells the rest
SMALL = 0.01  # of the peak: a category that never holds more is not named
CHANGING = 0.2  # of the peak: if less than this comes and goes, it is enlarged
HEAD = 1.15  # the panel's height over the highest line, for the peak's label
MOST_SHIFT = 30  # points that a phase's label may stand aside of it
PARTS = 150  # of the axis, each drawn by its lowest and its highest point
FINEST = 1 / 1200  # of the panel's height: smaller changes are not drawn
THINNEST = 1 / 200  # of the panel's height: a category that is never thicker is not drawn


class Timeline:
    """One device's rows of the timeline table in the order of events.

    event: (rows,) numbers of events; layers: (categories, rows) bytes up to and with each category; total, reserved:
    (rows,) bytes; phases: (first event, that of the next stretch, step or None, phase or "") of each stretch.
    """

    def __init__(self, rows: pd.DataFrame):
        rows = rows.dropna(subset=["event"]).sort_values("event", kind="stable") if "event" in rows else rows[:0]
        if "device" in rows and rows["device"].nunique() > 1:  # the one that held most
            rows = rows[rows["device"] == rows.loc[rows["active_bytes"].fillna(0).idxmax(), "device"]]
        self.event = rows["event"].to_numpy(dtype=float) if len(rows) else np.empty(0)
        held = np.array([_numbers(rows, name.replace(" ", "_")) for name in CATEGORIES])
        self.held = dict(zip(CATEGORIES, held, strict=True))
        self.layers = np.cumsum(held, axis=0)
        self.total = self.layers[-1]
        self.reserved = _numbers(rows, "reserved_bytes")
        self.peak = int(self.total.argmax()) if len(rows) else 0
        steps = column(rows, "step").astype(float)
        self._parts = [
            (None if np.isnan(step) else int(step), phase or "")
            for step, phase in zip(steps, column(rows, "phase").fillna(""), strict=True)
        ]
        self.phases = self._stretches()

    def _stretches(self) -> list[tuple[float, float, int | None, str]]:
        parts = [(part, len(list(members))) for part, members in groupby(self._parts)]
        starts = np.cumsum([0, *(count for _, count in parts)])
        ends = [*(self.event[at] for at in starts[1:-1]), *self.event[-1:]]
        return [(self.event[at], end, *part) for at, end, (part, _) in zip(starts, ends, parts, strict=False)]

    @property
    def unit(self) -> tuple[str, float]:
        """Of the memory axis: (name, bytes)."""
        return byte_unit(self.total.max(initial=0))

    def phase_of(self, row: int) -> str:
        """The phase of a row."""
        return self._parts[row][1]

    def telling_rows(self, parts: int) -> np.ndarray:
        """Rows to draw: the lowest and the highest of each part of the axis, the first and the last of each phase."""
        first, last = self.event[0], self.event[-1]
        part = np.minimum((self.event - first) / max(last - first, 1) * parts, parts - 1).astype(int)
        starts = np.flatnonzero(np.diff(part, prepend=-1))
        chosen = [0, len(part) - 1, self.peak]
        for start, end in pairwise([*starts, len(part)]):
            chosen += [start + int(self.total[start:end].argmin()), start + int(self.total[start:end].argmax())]
        changes = [at for at in range(1, len(self._parts)) if self._parts[at] != self._parts[at - 1]]
        return np.unique([*chosen, *changes, *(at - 1 for at in changes)])

    def draw(self, panel, parts: int = PARTS) -> None:
        """Draws the areas into a panel whose limits (events, `unit`) are set."""
        low, high = panel.get_ylim()
        rows, finest = self.telling_rows(parts), (high - low) * FINEST
        drawn = -np.inf
        visible = []
        for name, layer in zip(CATEGORIES, self.layers / self.unit[1], strict=True):
            seen = self.held[name].max(initial=0) / self.unit[1] > THINNEST * (high - low) and layer.max() > low
            visible += [(name, layer)] if seen and layer.max() > drawn else []
        for name, layer in reversed(visible):
            keep = rows == self.peak
            x, y = steps(self.event[rows], layer[rows], finest, keep)
            corners = [[x[-1], min(low, 0)], [x[0], min(low, 0)]]
            outline = np.vstack([np.column_stack([x, y]), corners])
            panel.add_patch(Polygon(outline, facecolor=colours.MEMORY[name], linewidth=0, label=name, snap=False))

    def draw_reserved(self, panel, parts: int = PARTS) -> None:
        """What the allocator has reserved, as a dashed line."""
        rows = self.telling_rows(parts)
        low, high = panel.get_ylim()
        x, y = steps(self.event[rows], self.reserved[rows] / self.unit[1], (high - low) * FINEST, rows == self.peak)
        panel.plot(x, y, color=colours.MUTED, linewidth=0.8, linestyle=(0, (4, 2)), label="reserved")


def _numbers(rows: pd.DataFrame, name: str) -> np.ndarray:
    return column(rows, name).astype(float).fillna(0.0).to_numpy()


def steps(x: np.ndarray, y: np.ndarray, finest: float, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of a curve that holds each value until the next; changes of less than `finest` are left out, but for the
    points to `keep`: (points,) booleans."""
    kept, last = [0], y[0]
    for at in range(1, len(y)):
        if abs(y[at] - last) >= finest or (keep[at] and y[at] != last):
            kept.append(at)
            last = y[at]
    xs, ys = x[kept], y[kept]
    corners_x = np.append(np.repeat(xs, 2)[1:], x[-1])
    return corners_x, np.repeat(ys, 2)


def draw_cell(tables, cell: str) -> Figure:
    """Active memory by category, phases above, the peak marked; enlarged below where most of it never changes."""
    row = measured(tables, cell).iloc[0]
    timeline = Timeline(rows_of(tables, "timeline", cell))
    if not len(timeline.event) or timeline.total.max() <= 0:
        why = {"OOM": "ran out of memory, and left no recording", "": "nothing was recorded"}
        name = f"{size_name(row['size'])}, context {row['context']:,.0f}, {row['precision']}{unusual(row)}"
        return theme.empty(f"{name}: {why.get(trouble(row), trouble(row))}. Nothing to draw.")
    handles = _handles(timeline)
    rows = _legend_rows(handles)
    legend = EDGE + LEGEND_ROW * rows
    enlarged = _changes_little(timeline)
    height = legend + LANE + PANEL + AXIS + (TITLE + ENLARGED) * enlarged
    figure = Figure(figsize=(theme.WIDTH, height))
    _legend(figure, handles, rows, timeline.unit[0])
    panel = _axes(figure, height - legend - LANE, PANEL, timeline)
    _draw_all(panel, row, timeline, rows_of(tables, "summary", cell), COARSE if enlarged else PARTS)
    _draw_phases(panel, timeline.phases)
    lowest = panel
    if enlarged:
        lowest = _axes(figure, AXIS + ENLARGED, ENLARGED, timeline)
        _draw_enlarged(lowest, timeline)
        panel.tick_params(axis="x", labelbottom=False)
    lowest.set_xlabel("event: allocations and frees in their order since the recording began", labelpad=2)
    return figure


def _axes(figure: Figure, top: float, height: float, timeline: Timeline):
    """A panel whose top is so many inches above the figure's lower edge."""
    whole_width, whole_height = figure.get_size_inches()
    panel = figure.add_axes(
        (LEFT / whole_width, (top - height) / whole_height, 1 - (LEFT + RIGHT) / whole_width, height / whole_height)
    )
    first, last = timeline.event[0], timeline.event[-1]
    panel.set_xlim(first, last if last > first else first + 1)
    panel.grid(False, axis="x")
    panel.locator_params(axis="y", nbins=6)
    panel.xaxis.set_major_formatter(tick)
    panel.set_ylabel(f"active ({timeline.unit[0]})")
    return panel


def _handles(timeline: Timeline) -> list[Patch]:
    """Categories that hold more than a little at some time, and what they hold at the peak (in the timeline's unit)."""
    peak, scale = timeline.total[timeline.peak], timeline.unit[1]
    found = []
    for name in CATEGORIES:
        there, most = timeline.held[name][timeline.peak], timeline.held[name].max()
        if most < SMALL * peak:
            continue
        text = significant(there / scale) if there > SMALL / 10 * peak else f"0 (at most {significant(most / scale)})"
        found.append(Patch(color=colours.MEMORY[name], linewidth=0, label=f"{name} {text}"))
    return found


def _legend_rows(handles: list[Patch]) -> int:
    """How many rows the legend needs."""
    widths = [text_width(handle.get_label(), 7.5) + HANDLE for handle in handles]
    return 1 if sum(widths) < 72 * (theme.WIDTH - LEGEND_LEFT - EDGE) else 2


def _legend(figure: Figure, handles: list[Patch], rows: int, unit: str) -> None:
    height = figure.get_figheight()
    look = {"fontsize": 7.5, "va": "center_baseline", "color": colours.MUTED}
    figure.text(EDGE / theme.WIDTH, 1 - (EDGE + 0.05) / height, f"at the peak ({unit}):", **look)
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(LEGEND_LEFT / theme.WIDTH, 1 - EDGE / height),
                  ncols=-(-len(handles) // rows), borderaxespad=0, borderpad=0, columnspacing=1.2,
                  handlelength=1.3)  # fmt: skip


def _changes_little(timeline: Timeline) -> bool:
    """Whether most of the peak is there all the time, and something is not."""
    peak = timeline.total.max()
    return 0 < peak - timeline.total.min() < CHANGING * peak


def _draw_all(panel, row: pd.Series, timeline: Timeline, summary: pd.DataFrame, parts: int) -> None:
    """Areas from zero on, lines for reserved memory, the card and the landmarks, and the peak."""
    scale = timeline.unit[1]
    lost, card = trouble(row) == "OOM", row["capacity_total_bytes"] / scale
    highest = max(timeline.total.max(), timeline.reserved.max()) / scale
    highest = max(highest, card) if lost and known(card) else highest
    panel.set_ylim(0, highest * HEAD)
    timeline.draw(panel, parts)
    end = panel.get_xlim()[1]
    lines = []
    # No allocator holds less than the peak at any time; on a CPU nothing is known to be held beyond what is in use.
    if timeline.reserved.max() > timeline.total.max():
        timeline.draw_reserved(panel, parts)
        lines.append(("reserved", timeline.reserved[-1] / scale))
    landmarks = {"model made": "baseline_model_bytes", "after the first step": "baseline_first_step_bytes"}
    marked = {name: row[key] / scale for name, key in landmarks.items() if known(row[key])}
    if lost and known(card):
        marked["the card"] = card
    for name, height in marked.items():
        look = {"linewidth": 0.9} if name == "the card" else {"linewidth": 0.7, "linestyle": (0, (1, 2))}
        panel.axhline(height, color=colours.INK, zorder=3, label=name, **look)
        lines.append((name, height))
    ends = [(f"{name} {significant(height)}", end, height, colours.MUTED) for name, height in lines]
    label_lines(panel, [each for each in ends if each[2] <= highest * HEAD], gap=0.075)
    _mark_peak(panel, timeline, summary, lost)


def _mark_peak(panel, timeline: Timeline, summary: pd.DataFrame, lost: bool) -> None:
    """A mark at the peak, a cross where memory ran out, and words above it."""
    x, y = timeline.event[timeline.peak], timeline.total[timeline.peak] / timeline.unit[1]
    first = summary.iloc[0] if len(summary) else pd.Series(dtype=object)
    module = first.get("peak_module")
    phase = timeline.phase_of(timeline.peak)
    where = f" in {phase}" if phase else ""
    where += f" ({short(module, 40)})" if isinstance(module, str) and module else ""
    text = f"peak {size_text(timeline.total[timeline.peak])}{where}"
    wanted, free = first.get("oom_requested_bytes"), first.get("oom_free_bytes")
    if lost:
        told = f": {size_text(wanted)} more wanted" if known(wanted) else ""
        told += f", {size_text(free)} free on the card" if told and known(free) else ""
        text = f"OOM{told}; {text}"
    top = panel.get_ylim()[1]
    left, right = panel.get_xlim()
    share = (x - left) / (right - left)
    align = "left" if share < 0.12 else "right" if share > 0.6 else "center"
    panel.plot([x, x], [y, top * 0.945], color=colours.INK, linewidth=0.6, zorder=4)
    look = {"marker": "X", "markersize": 6} if lost else {"marker": "o", "markersize": 4}
    look |= {"markerfacecolor": colours.PAPER, "markeredgecolor": colours.INK, "markeredgewidth": 0.9, "zorder": 5}
    panel.plot([x], [y], linestyle="none", clip_on=False, label="peak", **look)
    shift = {"left": -3, "right": 3, "center": 0}[align]
    panel.annotate(text, (x, top * 0.95), (shift, 0), textcoords="offset points", ha=align, va="bottom", fontsize=7)


def _draw_enlarged(panel, timeline: Timeline) -> None:
    """The part of the panel above in which memory comes and goes."""
    low, high = timeline.total.min() / timeline.unit[1], timeline.total.max() / timeline.unit[1]
    panel.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    timeline.draw(panel)
    panel.set_title(f"enlarged: the upper {size_text(timeline.total.max() - timeline.total.min())}")


def _draw_phases(panel, phases: list[tuple[float, float, int | None, str]]) -> None:
    """A lane of phases above the panel, and lines between them in it; what comes before the first is `setup`."""
    left, right = panel.get_xlim()
    scale = POINTS / (right - left)
    several = len({step for *_, step, phase in phases if phase}) > 1
    named, seen = [], False
    for start, end, step, phase in phases:
        seen = seen or bool(phase)
        if not phase and (seen or (end - start) * scale < text_width("setup") + 4):
            continue
        box = Rectangle((start, 1.01), max(end - start - 0.7 / scale, 0), LANE * 0.85 / PANEL, clip_on=False,
                        transform=panel.get_xaxis_transform(), facecolor=colours.RANGE, linewidth=0)  # fmt: skip
        panel.add_patch(box)
        if start > left:
            panel.axvline(start, color=colours.PAPER, linewidth=0.8, zorder=2.5)
        label = f"{phase} of step {step}" if several and phase else phase or "setup"
        named.append(((start + end) / 2 * scale - left * scale, label, (end - start) * scale))
    for place, label in _labels(named):
        panel.text(left + place / scale, 1.01 + LANE * 0.425 / PANEL, label, transform=panel.get_xaxis_transform(),
                   ha="center", va="center_baseline", fontsize=6.5)  # fmt: skip


def _labels(named: list[tuple[float, str, float]]) -> list[tuple[float, str]]:
    """(place, label) of phases (middle, label, width), in points: moved aside where they touch, else only those that
    fit into their phase."""
    middles, widths = [middle for middle, *_ in named], [text_width(label) for _, label, _ in named]
    places = beside(middles, widths, MOST_SHIFT, POINTS + 50)
    if places is not None:
        return [(place, label) for place, (_, label, _) in zip(places, named, strict=True)]
    shorter = [(middle, (label, label.split(" of ")[0]), width) for middle, label, width in named]
    fitting = [(middle, [each for each in both if text_width(each) + 2 < width]) for middle, both, width in shorter]
    return [(middle, fits[0]) for middle, fits in fitting if fits]


def size_text(size: float) -> str:
    """Bytes in the unit that suits them: 156 MiB, 13.7 GiB."""
    for unit, scale in (("GiB", GIB), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{significant(size / scale, 3)} {unit}"
    return f"{size:.0f} B"
