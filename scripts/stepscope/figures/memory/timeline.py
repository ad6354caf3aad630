"""A memory timeline as a stacked area of few points: rows that tell most, steps, phases.

Painted from the highest boundary to the lowest, each over the one before, so that a category needs only its upper
boundary; one that does not change takes two points. So a recording of thousands of events stays a small file.
"""

from itertools import groupby, pairwise

import numpy as np
import pandas as pd
from matplotlib.patches import Polygon

from stepscope.figures import colours
from stepscope.figures.memory.data import CATEGORIES, unit
from stepscope.report.kit.order import column

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
        return unit(self.total.max(initial=0))

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
