"""Figure: launch-bound or GPU-bound, the GPU's busy time against the step without a profiler."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stepscope.figures import colours, theme
from stepscope.figures.profile_data import (
    MOST_ROWS,
    NOTHING,
    by_phase,
    left_out,
    marks,
    more,
    profiled,
    size_name,
    trouble,
    unprofiled,
    words,
)
from stepscope.report.formatting import significant
from stepscope.report.tables import ordered

PALE = 0.28
FURTHEST = 300  # per cent; what reaches beyond is cut, its numbers stand beside it


def bound_rows(tables, cells: pd.DataFrame) -> list[dict]:
    """For each cell, in ms a step: `busy`, `profiled` and `free`, the step without a profiler; None where unknown."""
    busy, wall = (by_phase(tables, "busy", name) for name in ("busy_ms_per_step", "wall_ms_per_step"))
    rows = []
    for cell in cells.to_dict("records"):
        timed = unprofiled(tables, cell)
        rows.append(
            {
                "cell": cell,
                "busy": busy.get((cell["cell"], "step")),
                "profiled": wall.get((cell["cell"], "step")),
                "free": timed["ms"] if timed else None,
                "noisy": bool(timed and timed["noisy"]),
            }
        )
    return rows


def draw_bound(tables) -> Figure:
    """The GPU's busy time against the step without a profiler and the profiled one."""
    cells = profiled(tables)
    rows = bound_rows(tables, cells) if len(cells) else []
    if not any(row["busy"] for row in rows):
        return theme.empty(NOTHING)
    machines = ordered(cells["hardware"])
    groups = [[row for row in rows if row["cell"]["hardware"] == name] for name in machines]
    hidden = sum(max(len(group) - MOST_ROWS, 0) for group in groups)
    groups = [group[:MOST_ROWS] for group in groups]
    count = sum(map(len, groups))
    figure, axes = theme.panels(
        len(groups),
        1,
        0.5 + 0.23 * count / len(groups),
        width=theme.WIDTH,
        height_ratios=[len(group) for group in groups],
    )
    limit = 1.02 * min(max([100, *(share for row in rows if row["busy"] for share in _shares(row))]), FURTHEST)
    busy = words(cells, "GPU busy", "in operators")
    for (panel,), group, name in zip(axes, groups, machines, strict=True):
        _draw_bound(panel, group, "operators" if busy == "in operators" else "GPU busy")
        panel.set_xlim(0, limit)
        panel.axvline(100, color=colours.INK, linewidth=0.6, zorder=1.5)
        if len(groups) > 1:
            panel.annotate(theme.short(name, 60), (0, 1), (0, 3), "axes fraction", "offset points", color=colours.MUTED)
    axes[-1][0].set_xlabel(f"time (% of the step without a profiler){left_out(hidden)}")
    whole = {"color": colours.OTHER, "linewidth": 0}
    handles = [
        Patch(**whole, label=busy),
        Patch(**whole, alpha=PALE, label="not busy, without a profiler"),
        Line2D([], [], color=colours.MUTED, linewidth=1, marker="|", markersize=6, label="end of the profiled step"),
    ]
    if any(row["busy"] and not row["free"] for row in rows):
        handles.append(Patch(fill=False, edgecolor=colours.OTHER, label="not timed: % of the profiled step"))
    look = {"handles": handles, "ncols": len(handles), "borderpad": 0.1, "columnspacing": 1.4}
    if len(groups) == 1:  # beside the columns' heads
        axes[0][0].legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, **look)
    else:
        figure.legend(loc="outside upper left", **look)
    return figure


def _shares(row: dict) -> tuple[float, float]:
    """Busy and profiled time in per cent of the step without a profiler, else of the profiled one."""
    whole = row["free"] or row["profiled"]
    return 100 * row["busy"] / whole, 100 * row["profiled"] / whole


def _draw_bound(panel, rows: list[dict], busy_is: str) -> None:
    names = []
    for place, row in enumerate(rows):
        cell = row["cell"]
        names.append(
            f"{size_name(cell)}, {cell['context']:,.0f}, {cell['precision']}{more(cell)}{marks(cell, row['noisy'])}"
        )
        if not row["busy"]:
            panel.text(1, place, trouble(cell) or "no trace", va="center", fontsize=6.5, color=colours.MUTED)
            continue
        busy, profiled_at = _shares(row)
        colour = colours.precision(cell["precision"])
        if row["free"]:
            panel.barh(place, busy, height=0.72, color=colour, linewidth=0)
            if busy < 100:
                panel.barh(place, 100 - busy, left=busy, height=0.72, color=colour, alpha=PALE, linewidth=0)
            reach, end = max(100, busy), min(profiled_at, FURTHEST)
            if end > reach:
                panel.plot([reach, end], [place, place], color=colours.MUTED, linewidth=1)
            mark = "|" if end == profiled_at else ">"
            panel.plot([end], [place], mark, color=colours.MUTED, markersize=7 if mark == "|" else 4)
        else:
            panel.barh(place, 100, height=0.68, fill=False, edgecolor=colours.OTHER, linewidth=0.7)
            panel.barh(place, busy, height=0.68, fill=False, edgecolor=colour, linewidth=1)
        inside = busy > 8
        ink = colours.PAPER if row["free"] and inside else colours.INK
        at, side = (min(busy, 0.97 * FURTHEST) - 0.8, "right") if inside else (busy + 0.8, "left")
        panel.text(at, place, f"{busy:,.0f} %", ha=side, va="center", fontsize=6.5, color=ink)
    panel.set_yticks(range(len(rows)), names)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.grid(False, axis="y")
    panel.tick_params(axis="y", length=0)
    _columns(panel, rows, (busy_is, "step", "profiled step"))


def _columns(panel, rows: list[dict], heads: tuple[str, str, str]) -> None:
    """The three times of each row in ms, right of the panel."""
    place = panel.get_yaxis_transform()
    for at, head, key in zip((1.075, 1.145, 1.215), heads, ("busy", "free", "profiled"), strict=True):
        look = {"ha": "right", "fontsize": 6.5, "annotation_clip": False}
        panel.annotate(head.replace(" ", "\n") + "\n(ms)", (at, 1), (0, 2), "axes fraction", "offset points",
                       color=colours.MUTED, va="bottom", **look)  # fmt: skip
        for height, row in enumerate(rows):
            text = significant(row[key]) if row[key] else "–"
            panel.annotate(text, (at, height), xycoords=place, va="center", **look)
