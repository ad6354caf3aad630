"""The figure of one profiled cell: categories by phase, the timeline of a step, the zoom into one attention.

A timeline is lanes of rectangles, ranges and CUDA calls above, the device below. A lane's rectangles are drawn as one
thick line, broken where nothing ran, so that a step of thousands of kernels stays a small file. The line's thickness in
points has to be known: a panel has a fixed size.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch, Rectangle
from matplotlib.path import Path

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.labels import short, tick, trouble
from stepscope.figures.marks import beside, spread, stack, text_width
from stepscope.figures.profile.data import PHASES, by_category, rows_of, words
from stepscope.report.kit.formatting import significant

# Inches.
BAR, TITLE, AXIS, BETWEEN = 0.215, 0.24, 0.42, 0.02
LEGEND_ROW, EDGE = 0.17, 0.06
LEFT, RIGHT = 1.42, 0.55
LANE, LANE_GAP = 0.185, 0.07
POINTS = 72 * (theme.WIDTH - LEFT - RIGHT)  # width of a panel in points
LABEL_SIZES = (6.5, 6.0, 5.5)  # the first at which all labels of a lane have room
LABEL_SIZE = LABEL_SIZES[0]
MOST_IN_LEGEND_ROW = 7
MOST_SHIFT = 30  # points that a label may stand aside of its range before it is slanted
SLANT = 32  # degrees of a label that has no room
PARTS = "ranges 1"  # the lane of an attention's parts, in its view


class View:
    """One view of the timeline table, `step` or `attention`: lanes from above, and labels that have no room in them."""

    def __init__(self, rows: pd.DataFrame, attention: str) -> None:
        self.rows, self.attention = rows, attention  # the label of an attention's range
        self.name = rows["view"].iloc[0] if len(rows) else ""
        self.span = float(rows["span_us"].iloc[0]) if len(rows) else 0.0  # microseconds
        self.lanes = list(dict.fromkeys(rows["lane"])) if self.span > 0 else []
        self.framed = False
        self.outside, self.slanted, self.below = [], False, 0.0  # the last in inches
        if self.name == "attention" and PARTS in self.lanes:
            self._place_labels()
        self.height = (LANE + LANE_GAP) * len(self.lanes) + self.below

    @property
    def unit(self) -> tuple[str, float]:
        """Of the time axis: (name, microseconds)."""
        return ("ms", 1e3) if self.span >= 1e4 else ("µs", 1.0)

    @property
    def length(self) -> str:
        """The view's length as text."""
        name, scale = self.unit
        return f"{significant(self.span / scale)} {name}"

    def lane(self, name: str) -> pd.DataFrame:
        """A lane's rectangles."""
        return self.rows[self.rows["lane"] == name]

    def points(self, microseconds: float) -> float:
        """A time as a length in the drawing."""
        return microseconds / self.span * POINTS

    def _place_labels(self) -> None:
        """`outside`: (middle of a part, place of its label, label) in points, of the parts too short for their label.

        Only of the attention that the view is of; others may follow until its last kernel ends.
        """
        own = self.lane(PARTS)
        own = own[own["start_us"] < self._end()].sort_values("start_us")
        tight = [row for row in own.itertuples() if not _label_size([row], self)]
        middles = [self.points((row.start_us + row.end_us) / 2) for row in tight]
        labels = [str(row.label) for row in tight]
        if not labels:
            return
        widths = [text_width(label) for label in labels]
        places = beside(middles, widths, MOST_SHIFT, POINTS + 72 * RIGHT)
        self.slanted = places is None
        if places is None:
            gap = LABEL_SIZE * 1.5 / np.sin(np.radians(SLANT))
            places = [POINTS * place for place in spread([middle / POINTS for middle in middles], gap / POINTS)]
            places = [place + max(0.0, middles[0] - places[0]) for place in places]
        self.outside = list(zip(middles, places, labels, strict=True))
        drop = max(widths) * np.sin(np.radians(SLANT)) + 14 if self.slanted else 16
        self.below = drop / 72

    def _end(self) -> float:
        """End of the range that the view is of (microseconds)."""
        own = self.lane(self.lanes[0])
        return float(own.loc[own["start_us"] == 0, "end_us"].max()) if (own["start_us"] == 0).any() else self.span

    def draw(self, panel) -> None:
        """Draws the lanes into a panel of `height` inches; y is in inches, from above."""
        panel.set_xlim(0, self.span)
        panel.set_ylim(self.height, 0)
        places = self._places()
        for lane, place in places.items():
            own = self.lane(lane)
            if lane.startswith("ranges"):
                self._draw_ranges(panel, own, place)
                continue
            thick(panel, np.array([0.0]), np.array([self.span]), place, colours.LANE)
            for category in dict.fromkeys(own["category"]):
                part = own[own["category"] == category]
                colour = colours.CALL if category == "call" else colours.category(category)
                thick(panel, part["start_us"].to_numpy(), part["end_us"].to_numpy(), place, colour)
        if self.outside:
            self._draw_outside(panel, places[PARTS] + LANE / 2)
        panel.set_yticks(list(places.values()), _lane_names(self.lanes))
        panel.spines["left"].set_visible(False)
        panel.grid(True, axis="x")
        unit, scale = self.unit
        panel.xaxis.set_major_formatter(lambda value, _: tick(value / scale))
        panel.set_xlabel(unit, labelpad=1)

    def _places(self) -> dict[str, float]:
        """Lane → its middle (inches from above)."""
        places, top = {}, 0.0
        for lane in self.lanes:
            places[lane] = top + (LANE_GAP + LANE) / 2
            top += LANE + LANE_GAP + (self.below if lane == PARTS else 0.0)
        return places

    def _draw_ranges(self, panel, own: pd.DataFrame, place: float) -> None:
        """A lane of ranges, a hair apart; attention and its parts darker; labels where there is room."""
        inside = self._inside_attention(own)
        hair = self.span * 0.7 / POINTS
        for colour, part in ((colours.RANGE, own[~inside]), (colours.RANGE_ATTENTION, own[inside])):
            start, end = part["start_us"].to_numpy(), part["end_us"].to_numpy()
            thick(panel, start, np.maximum(end - hair, start + hair / 2), place, colour)
        named = [row for row in own.itertuples() if _label_size([row], self)]
        size = _label_size(named, self)
        for row in named:
            look = {"ha": "center", "va": "center_baseline", "fontsize": size}
            panel.text((row.start_us + row.end_us) / 2, place, str(row.label), **look)

    def _inside_attention(self, own: pd.DataFrame) -> pd.Series:
        """Which ranges of a lane are an attention, or lie in one of the lane above."""
        level = int(own["lane"].iloc[0].removeprefix("ranges "))
        above = self.lane(f"ranges {level - 1}")
        above = above[above["label"] == self.attention]
        middle = ((own["start_us"] + own["end_us"]) / 2).to_numpy()[:, None]
        within = (above["start_us"].to_numpy() <= middle) & (middle <= above["end_us"].to_numpy())
        return (own["label"] == self.attention) | within.any(axis=1)

    def _draw_outside(self, panel, bottom: float) -> None:
        """Labels below their ranges, with a line to each; slanted if they had no room beside each other."""
        for middle, place, label in self.outside:
            ends = [middle / POINTS * self.span, place / POINTS * self.span]
            depth = bottom + 6 / 72
            panel.plot(ends, [bottom + 1 / 72, depth], color=colours.MUTED, linewidth=0.5)
            look = {"fontsize": LABEL_SIZE, "va": "top", "ha": "left" if self.slanted else "center"}
            if self.slanted:
                look |= {"rotation": -SLANT, "rotation_mode": "anchor"}
            panel.text(ends[1], depth + 1.5 / 72, label, **look)

    def frame(self, panel, zoom: "View") -> None:
        """A frame around what the zoom shows, at the middle range of its name in this view, if the lengths agree."""
        shown = zoom.lane(zoom.lanes[0])
        shown = shown[(shown["start_us"] == 0) & shown["lane"].str.startswith("ranges")].head(1)
        if shown.empty:
            return
        alike = self.rows[self.rows["lane"].str.startswith("ranges") & (self.rows["label"] == shown["label"].iloc[0])]
        middle = alike.sort_values("start_us").iloc[len(alike) // 2 :].head(1)
        length = float(shown["end_us"].iloc[0])
        if middle.empty or abs(float((middle["end_us"] - middle["start_us"]).iloc[0]) - length) > 0.005 * self.span:
            return
        top = self._places()[middle["lane"].iloc[0]] - (LANE + LANE_GAP) / 2
        corner, width = (float(middle["start_us"].iloc[0]), top), zoom.span
        panel.add_patch(
            Rectangle(corner, width, self.height - top, fill=False, edgecolor=colours.INK, linewidth=0.7, zorder=5)
        )
        zoom.framed = True


def _lane_names(lanes: list[str]) -> list[str]:
    """`ranges 0` … become one name; the thread that opened the ranges is thread 0."""
    names, seen = [], False
    for lane in lanes:
        if lane.startswith("ranges"):
            names.append("" if seen else "named ranges")
            seen = True
        else:
            names.append(short(lane, 24))
    return names


def thick(panel, start: np.ndarray, end: np.ndarray, place: float, colour: str) -> None:
    """Rectangles from `start` to `end` (data units), one lane high, as one path; its line is as thick as the lane."""
    if not len(start):
        return
    vertices = np.column_stack([np.ravel(np.column_stack([start, end])), np.full(2 * len(start), place)])
    path = Path(vertices, np.tile([Path.MOVETO, Path.LINETO], len(start)))
    path.should_simplify = False
    patch = PathPatch(path, fill=False, edgecolor=colour, linewidth=72 * LANE, capstyle="butt", joinstyle="miter")
    patch.set_snap(False)
    panel.add_patch(patch)


def _label_size(rows: list, view: View) -> float | None:
    """The largest font size at which these ranges hold their labels; None if they do not at any."""
    widths = [(view.points(row.end_us - row.start_us) - 2, str(row.label)) for row in rows]
    fitting = (size for size in LABEL_SIZES if all(text_width(label, size) <= width for width, label in widths))
    return next(fitting, None)


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
    look = {"va": "center_baseline", "fontsize": LABEL_SIZE}
    for place, phase in enumerate(phases):
        total, spent = sum(times[phase].values()), [times[phase].get(name, 0.0) for name in colours.CATEGORY]
        ends = stack(panel, place, zip(spent, colours.CATEGORY.values(), strict=True), height=0.8)
        for name, left, width in zip(colours.CATEGORY, ends, spent, strict=False):
            text = f"{100 * width / total:.0f} %" if width > 0 else ""
            has_room = width / panel.get_xlim()[1] * POINTS > text_width(text) + 4
            if text and has_room and name != "memory set/copy":
                panel.text(left + width / 2, place, text, ha="center", color=colours.ON_BAR, **look)
        panel.text(ends[-1] + 0.006 * longest, place, f"{significant(total)} ms", **look)
    panel.set_yticks(range(len(phases)), phases)
    panel.set_ylim(len(phases) - 0.5, -0.5)
    panel.xaxis.set_major_formatter(tick)
    panel.set_xlabel("ms per step", labelpad=1)
    panel.set_title(what)
