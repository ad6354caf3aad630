"""Figure: launch-bound or GPU-bound, the GPU's busy time against the step without a profiler.

The profiler slows what runs on the host: operators of a CPU are compared with the profiled step, which holds them.
"""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.facets import Facets, above, cells_in_order
from stepscope.figures.labels import doubts, omitted, short, size_name, trouble, unusual
from stepscope.figures.marks import bar_axis
from stepscope.figures.profile.data import MOST_ROWS, NOTHING, by_phase, on_host, words
from stepscope.report.data.unprofiled import free_step, same_point
from stepscope.report.kit.formatting import known, significant
from stepscope.report.kit.order import machine_labels, plainly_recorded, with_order

PALE = 0.28
IDLE = "not busy, without a profiler"
COLUMNS = (29, 56, 83)  # points from a panel to the ends of its columns of numbers
FURTHEST = 300  # per cent; what reaches beyond is cut, its numbers stand beside it


def bound_rows(tables, cells: pd.DataFrame) -> list[dict]:
    """For each cell, in ms a step: `busy`, `profiled` and `free`, the step without a profiler; None where unknown.

    `whole` is the one of the last two that is 100 %; `apart` marks one that is the profiled step beside others.
    """
    busy, wall = (by_phase(tables, "busy", name) for name in ("busy_ms_per_step", "wall_ms_per_step"))
    timing, rows = with_order(tables["timing"]), []
    asked = {row["cell"]: row for row in with_order(tables["profile"]).to_dict("records")}
    for cell in cells.to_dict("records"):
        own = asked[cell["cell"]]
        free, noisy = free_step(same_point(timing, own), own)
        found = {"cell": cell, "busy": busy.get((cell["cell"], "step")), "profiled": wall.get((cell["cell"], "step"))}
        found |= {"free": free if known(free) else None, "noisy": noisy}
        free = None if cell.get("device") == "cpu" else found["free"]
        rows.append(found | {"whole": free or found["profiled"], "apart": not free and not on_host(cells)})
    return rows


def draw_bound(tables) -> Figure:
    """The GPU's busy time against the step without a profiler and the profiled one."""
    cells = cells_in_order(plainly_recorded(tables["profile"]))
    rows = bound_rows(tables, cells) if len(cells) else []
    if not any(row["busy"] for row in rows):
        return theme.empty(NOTHING)
    machines = machine_labels(cells["hardware"])
    groups = [[row for row in rows if row["cell"]["hardware"] == name] for name in machines]
    hidden = sum(max(len(group) - MOST_ROWS, 0) for group in groups)
    groups = [group[:MOST_ROWS] for group in groups]
    count = sum(map(len, groups))
    height, ratios = 0.5 + 0.23 * count / len(groups), [len(group) for group in groups]
    facets = Facets(groups, [0], height, width=theme.WIDTH, height_ratios=ratios)
    limit = 1.02 * min(max([100, *(share for row in rows if row["busy"] for share in _shares(row))]), FURTHEST)
    busy = words(cells, "GPU busy", "in operators")
    for name, (group, (panel,)) in zip(machines, facets, strict=True):
        _draw_bound(panel, group, "operators" if busy == "in operators" else "GPU busy")
        panel.set_xlim(0, limit)
        panel.axvline(100, color=colours.INK, linewidth=0.6, zorder=1.5)
        if len(groups) > 1:
            above(panel, short(name, 60), 3, va="baseline", color=colours.MUTED)
    step = "profiled step" if on_host(cells) else "step without a profiler"
    panel.set_xlabel(f"time (% of the {step}){omitted(hidden)}")
    handles = _handles(rows, busy, on_host(cells))
    look = {"handles": handles, "ncols": len(handles), "borderpad": 0.1, "columnspacing": 1.4}
    if len(groups) == 1:  # beside the columns' heads
        panel.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, **look)
    else:
        facets.figure.legend(loc="outside upper left", **look)
    return facets.figure


def _handles(rows: list[dict], busy: str, host: bool) -> list:
    """The legend's entries."""
    whole = {"color": colours.OTHER, "linewidth": 0}
    handles = [Patch(**whole, label=busy), Patch(**whole, alpha=PALE, label="not in operators" if host else IDLE)]
    if not host:
        look = {"color": colours.MUTED, "linewidth": 1, "marker": "|", "markersize": 6}
        handles.append(Line2D([], [], **look, label="end of the profiled step"))
    if any(row["busy"] and row["apart"] for row in rows):
        cpu = any(row["cell"].get("device") == "cpu" for row in rows)
        label = ("CPU or not timed" if cpu else "not timed") + ": % of the profiled step"
        handles.append(Patch(fill=False, edgecolor=colours.OTHER, label=label))
    return handles


def _shares(row: dict) -> tuple[float, float]:
    """Busy and profiled time in per cent of the step without a profiler, else of the profiled one."""
    return 100 * row["busy"] / row["whole"], 100 * row["profiled"] / row["whole"]


def _draw_bound(panel, rows: list[dict], busy_is: str) -> None:
    names = []
    for place, row in enumerate(rows):
        cell = row["cell"]
        name = f"{size_name(cell['size'])}, {cell['context']:,.0f}, {cell['precision']}"
        names.append(f"{name}{unusual(cell)}{doubts(cell, row['noisy'])}")
        if not row["busy"]:
            panel.text(1, place, trouble(cell) or "no trace", va="center", fontsize=6.5, color=colours.MUTED)
            continue
        busy, profiled_at = _shares(row)
        colour = colours.precision(cell["precision"])
        if not row["apart"]:
            panel.barh(place, busy, height=0.72, color=colour, linewidth=0)
            if busy < 100:
                panel.barh(place, 100 - busy, left=busy, height=0.72, color=colour, alpha=PALE, linewidth=0)
            reach, end = max(100, busy), min(profiled_at, FURTHEST)
            if end > reach:
                panel.plot([reach, end], [place, place], color=colours.MUTED, linewidth=1)
            mark = "|" if end == profiled_at else ">"
            if row["whole"] != row["profiled"]:
                panel.plot([end], [place], mark, color=colours.MUTED, markersize=7 if mark == "|" else 4)
        else:
            panel.barh(place, 100, height=0.68, fill=False, edgecolor=colours.OTHER, linewidth=0.7)
            panel.barh(place, busy, height=0.68, fill=False, edgecolor=colour, linewidth=1)
        inside = busy > 8
        ink = colours.PAPER if inside and not row["apart"] else colours.INK
        at, side = (min(busy, 0.97 * FURTHEST) - 0.8, "right") if inside else (busy + 0.8, "left")
        panel.text(at, place, f"{busy:,.0f} %", ha=side, va="center", fontsize=6.5, color=ink)
    bar_axis(panel, range(len(rows)), names)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    _columns(panel, rows, (busy_is, "step", "profiled step"))


def _columns(panel, rows: list[dict], heads: tuple[str, str, str]) -> None:
    """The three times of each row in ms, right of the panel."""
    place = panel.get_yaxis_transform()
    for at, head, key in zip(COLUMNS, heads, ("busy", "free", "profiled"), strict=True):
        look = {"ha": "right", "fontsize": 6.5, "textcoords": "offset points", "annotation_clip": False}
        text = head.replace(" ", "\n") + "\n(ms)"
        panel.annotate(text, (1, 1), (at, 2), "axes fraction", color=colours.MUTED, va="bottom", **look)
        for height, row in enumerate(rows):
            text = significant(row[key]) if row[key] else "–"
            panel.annotate(text, (1, height), (at, 0), place, va="center", **look)
