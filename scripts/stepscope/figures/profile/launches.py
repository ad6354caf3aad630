"""Figure: kernels launched in a step, by phase, over the size and over the context."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stepscope.figures import colours, theme
from stepscope.figures.profile.data import (
    MOST_ROWS,
    NOTHING,
    PHASES,
    by_phase,
    marks,
    more,
    profiled,
    size_name,
    trouble,
    words,
)
from stepscope.report.kit.order import machine_labels

PALE = 0.42


def launches(cell: dict, kernels: dict, seen: dict) -> list[tuple[str, float, float]]:
    """(phase, kernels a step, those that the thread which opened the phase's range launched) of one cell."""
    name = cell["cell"]
    parts = [
        (phase, kernels[name, phase], min(seen.get((name, phase), kernels[name, phase]), kernels[name, phase]))
        for phase in PHASES
        if kernels.get((name, phase), 0) > 0
    ]
    rest = kernels.get((name, "step"), 0) - sum(count for _, count, _ in parts)
    return [*parts, ("other", rest, rest)] if rest > 0.5 else parts


def draw_launches(tables) -> Figure:
    """Kernels launched in a step by phase: over the size on the left, over the context on the right."""
    cells = profiled(tables)
    kernels = by_phase(tables, "phases", "kernels_per_step")
    seen = by_phase(tables, "phases", "kernels_by_thread_rule_per_step")
    if cells.empty or not kernels:
        return theme.empty(NOTHING)
    machines = [cells[cells["hardware"] == name] for name in machine_labels(cells["hardware"])]
    grids = [(_at_usual_context(own), _over_context(own)) for own in machines]
    columns = 2 if any(len(right) for _, right in grids) else 1
    lines = [max(len(part) for part in grid) for grid in grids]
    figure, axes = theme.panels(
        len(grids),
        columns,
        0.55 + 0.2 * sum(lines) / len(lines),
        width=4.2 if columns == 2 else 6.4,
        height_ratios=[count + 0.5 for count in lines],
    )
    several = len(grids) > 1
    drawn: set[str] = set()
    unseen = False
    for row, grid in zip(axes, grids, strict=True):
        for panel, part, by in zip(row, grid, ("size", "context"), strict=False):
            if part.empty:
                panel.set_visible(False)
                continue
            bars = [launches(cell, kernels, seen) for cell in part.to_dict("records")]
            _draw_launches(panel, part, bars, by)
            drawn |= {phase for parts in bars for phase, _, _ in parts}
            unseen |= any(count - own > 0.5 for parts in bars for _, count, own in parts)
        shown = [panel for panel in row if panel.get_visible()]
        for panel in shown:  # bars of one scale and thickness
            panel.set_xlim(0, max(each.get_xlim()[1] for each in shown))
            panel.set_ylim(max(each.get_ylim()[0] for each in shown), -0.6)
        if several:
            title = row[0].get_title(loc="left")
            row[0].set_title(f"{theme.short(grid[0]['hardware'].iloc[0], 40)}: {title}")
    figure.supxlabel(words(cells, "kernels launched in a step", "operators run in a step"), fontsize=8)
    first = " or ".join(phase for phase in ("inference", "forward") if phase in drawn)
    names = {"inference": first, "forward": f"{first} (with the loss)", "other": "outside the phases"}
    shown = [name for name in (*PHASES, "other") if name in drawn and not (name == "inference" and "forward" in drawn)]
    handles = [Patch(color=_phase_colour(name), linewidth=0, label=names.get(name, name)) for name in shown]
    if unseen:
        look = {"color": colours.PHASE["backward"], "alpha": PALE, "linewidth": 0}
        handles.append(Patch(**look, label="paler: launched by another thread"))
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))
    return figure


def _phase_colour(phase: str) -> str:
    return colours.PHASE.get("forward" if phase == "inference" else phase, colours.OTHER)


def _at_usual_context(own: pd.DataFrame) -> pd.DataFrame:
    """The cells at the context that most sizes have."""
    sizes = own.groupby("context")["size"].nunique()
    return own[own["context"] == sizes.idxmax()].head(MOST_ROWS)


def _over_context(own: pd.DataFrame) -> pd.DataFrame:
    """The cells of the size that has most contexts; none if no size has several."""
    contexts = own.groupby("size", sort=False)["context"].nunique()
    return own[own["size"] == contexts.idxmax()].head(MOST_ROWS) if contexts.max() > 1 else own[:0]


def _draw_launches(panel, part: pd.DataFrame, bars: list, by: str) -> None:
    longest = max((sum(count for _, count, _ in parts) for parts in bars), default=0) or 1
    names, places, before = [], [], None
    text = {"va": "center", "fontsize": 6.5}
    for cell, parts in zip(part.to_dict("records"), bars, strict=True):
        place = (places[-1] + (1 if cell[by] == before else 1.35)) if places else 0.0
        places.append(place)
        group = size_name(cell) if by == "size" else f"{cell['context']:,.0f}"
        names.append(f"{group}  {cell['precision']}{more(cell)}{marks(cell)}")
        before = cell[by]
        left = 0.0
        for phase, count, seen in parts:
            colour = _phase_colour(phase)
            panel.barh(place, seen, left=left, height=0.8, color=colour, linewidth=0)
            panel.barh(place, count - seen, left=left + seen, height=0.8, color=colour, alpha=PALE, linewidth=0)
            if count > 0.017 * len(f"{count:,.0f}") * longest:
                ink = colours.ON_BAR if seen > count / 2 else colours.INK
                panel.text(left + count / 2, place, f"{count:,.0f}", color=ink, ha="center", **text)
            left += count
        total, ink = (f"{left:,.0f}", colours.INK) if parts else (trouble(cell) or "no trace", colours.MUTED)
        panel.text(left + 0.012 * longest, place, total, color=ink, **text)
    panel.set_yticks(places, names)
    panel.set_ylim(places[-1] + 0.6, -0.6)
    panel.set_xlim(0, longest * 1.13)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panel.grid(False, axis="y")
    panel.tick_params(axis="y", length=0)
    first = part.iloc[0]
    panel.set_title(f"by size, context {first['context']:,.0f}" if by == "size" else f"by context, {size_name(first)}")
