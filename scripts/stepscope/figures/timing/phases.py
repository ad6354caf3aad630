"""Figure: how forward, backward and optimizer share a step."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stepscope.figures import colours, theme
from stepscope.figures.choosing import MOST_SIZES, pick
from stepscope.report.kit.order import main_grid, ordered

MOST_BARS = 190


def draw_phases(tables) -> Figure:
    """Shares of forward, backward and optimizer; the numbers are milliseconds."""
    grid = main_grid(tables["timing"])
    names = tuple(colours.PHASE)[:3]
    medians = [f"{name}_median_ms" for name in names]
    if grid.empty or not set(medians) <= set(grid.columns) or grid[medians].notna().all(axis=1).sum() == 0:
        return theme.empty("No cell has timed forward, backward and optimizer: nothing to draw.")
    contexts = pick(ordered(grid["context"]), 4)
    rows = list(grid[["hardware", "precision"]].drop_duplicates().itertuples(index=False, name=None))[:6]
    most = min(MOST_SIZES, MOST_BARS // (len(rows) * len(contexts)))
    sizes = pick(list(dict.fromkeys(grid.sort_values("parameters")["size"])), most)
    figure, axes = theme.panels(len(rows), len(contexts), 0.35 + 0.19 * len(sizes), sharex=True, sharey=True)
    several = grid["hardware"].nunique() > 1
    for (hardware, precision), row in zip(rows, axes, strict=True):
        part = grid[(grid["hardware"] == hardware) & (grid["precision"] == precision)]
        for context, panel in zip(contexts, row, strict=True):
            _draw_shares(panel, part[part["context"] == context].set_index("size"), sizes, names)
        place = f"{theme.short(hardware, 40)}, " if several else ""
        row[0].set_title(f"{place}{theme.short(precision, 10)}")
    for context, panel in zip(contexts, axes[0], strict=True):
        place = {"xycoords": panel.get_xaxis_transform(), "textcoords": "offset points", "annotation_clip": False}
        panel.annotate(
            f"context {context:,.0f}", (50, 1), (0, 18 if several else 6), ha="center", fontsize=7.5, **place
        )
    axes[0][0].set_yticks(range(len(sizes)), [theme.short(size, 14) for size in sizes])
    axes[0][0].invert_yaxis()
    figure.supxlabel("share of forward + backward + optimizer (%); in the bars and beside them: ms", fontsize=8)
    handles = [Patch(color=colours.PHASE[name], label=name) for name in names]
    figure.legend(handles=handles, loc="outside upper right", ncols=3)
    return figure


def _draw_shares(panel, part: pd.DataFrame, sizes: list[str], names: tuple[str, ...]) -> None:
    """Horizontal bars of one panel, a size a bar."""
    panel.grid(False)
    panel.spines["left"].set_visible(False)
    panel.tick_params(axis="y", length=0)
    panel.set_xlim(0, 124)
    panel.set_xticks([0, 50, 100])
    for place, size in enumerate(sizes):
        if size not in part.index:
            continue
        cell = part.loc[size]
        times = [cell[f"{name}_median_ms"] for name in names]
        if any(pd.isna(time) for time in times):
            status = "OOM" if cell["status"] == "oom" else cell["status"]
            panel.text(2, place, status, va="center", fontsize=6.5, color=colours.MUTED)
            continue
        left, total = 0.0, sum(times)
        for name, time in zip(names, times, strict=True):
            width = 100 * time / total
            panel.barh(place, width, left=left, height=0.78, color=colours.PHASE[name])
            if width > 15:
                panel.text(left + width / 2, place, _time(time), ha="center", va="center", fontsize=6, color="#111213")
            left += width
        panel.text(102, place, _time(total), va="center", fontsize=6.5)


def _time(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"
