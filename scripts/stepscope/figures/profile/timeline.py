"""A timeline: lanes of rectangles, ranges and CUDA calls above, the device below.

A lane's rectangles are drawn as one thick line, broken where nothing ran, so that a step of thousands of kernels stays
a small file. The line's thickness in points has to be known: a panel has a fixed size.
"""

from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from stepscope.figures import colours, theme
from stepscope.figures.profile.data import tick
from stepscope.report.kit.formatting import significant

# Inches.
LEFT, RIGHT = 1.42, 0.55
LANE, LANE_GAP = 0.185, 0.07
POINTS = 72 * (theme.WIDTH - LEFT - RIGHT)  # width of a panel in points
LABEL_SIZES = (6.5, 6.0, 5.5)  # the first at which all labels of a lane have room
LABEL_SIZE = LABEL_SIZES[0]
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
        places = beside(middles, [text_width(label) for label in labels])
        self.slanted = places is None
        if places is None:
            gap = LABEL_SIZE * 1.5 / np.sin(np.radians(SLANT))
            places = [POINTS * place for place in theme.spread([middle / POINTS for middle in middles], gap / POINTS)]
            places = [place + max(0.0, middles[0] - places[0]) for place in places]
        self.outside = list(zip(middles, places, labels, strict=True))
        drop = max(map(text_width, labels)) * np.sin(np.radians(SLANT)) + 14 if self.slanted else 16
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
            names.append(theme.short(lane, 24))
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


def beside(middles: list[float], widths: list[float], gap: float = 5.0) -> list[float] | None:
    """Places of labels in one line, as near to these as they can be without touching; None if some are too far away."""
    places = list(middles)
    for _ in range(200):
        for at in range(len(places) - 1):
            overlap = (widths[at] + widths[at + 1]) / 2 + gap - (places[at + 1] - places[at])
            if overlap > 0:
                places[at] -= overlap / 2
                places[at + 1] += overlap / 2
    ends = [place + width / 2 for place, width in zip(places, widths, strict=True)]
    far = any(abs(place - middle) > MOST_SHIFT for place, middle in zip(places, middles, strict=True))
    touching = any(
        b - a < (u + v) / 2 + gap - 0.5 for (a, b), (u, v) in zip(pairwise(places), pairwise(widths), strict=True)
    )
    return None if far or touching or max(ends, default=0) > POINTS + 72 * RIGHT else places


@cache
def text_width(text: str, size: float = LABEL_SIZES[0]) -> float:
    """Width of a label in points."""
    font = FontProperties(family="DejaVu Sans", size=size)
    return float(TextPath((0, 0), text, prop=font).get_extents().x1) if text.strip() else 0.0
