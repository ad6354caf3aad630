"""Figures of what kernels a step runs: the share of matrix products, the launches, the categories by phase."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.facets import Facets, cells_in_order, wrapped
from stepscope.figures.labels import doubts, short, size_name, tick, trouble, unusual
from stepscope.figures.marks import bar_axis, label_lines, precision_look, stack
from stepscope.figures.profile.data import MOST_ROWS, NOTHING, PHASES, by_phase, traced, words
from stepscope.report.kit.formatting import significant
from stepscope.report.kit.order import machine_labels, ordered, plainly_recorded, precision_rank

# The share of matrix products -----------------------------------------------------------------------------------------

MOST_PANELS = 24


def matmul_shares(cell: dict, times: dict) -> dict[str, tuple[float, float]]:
    """Phase → (share of matmul, share of fused attention) in per cent of the time, of what a step's cell tells."""
    found = {}
    for phase in (*PHASES[:3], *(["step"] if cell["mode"] == "step" else [])):
        own = times.get((cell["cell"], phase), {})
        total = sum(own.values())
        if total > 0:
            found[phase] = tuple(100 * own.get(name, 0.0) / total for name in ("matmul", "fused attention"))
    return found


def draw_matmul_share(tables) -> Figure:
    """Share of matmul in each phase's time, a line a precision, a panel for each size and context."""
    cells, times = traced(tables)
    if cells.empty:
        return theme.empty(NOTHING)
    places = list(cells.groupby(["hardware", "size", "context", "options"], sort=False))
    more_places, places = len(places) - MOST_PANELS, places[:MOST_PANELS]
    shares = {cell["cell"]: matmul_shares(cell, times) for cell in cells.to_dict("records")}
    phases = [
        name for name in ("inference", "forward", "backward", "step") if any(name in own for own in shares.values())
    ]
    facets, panels, spare = wrapped(len(places), 3, 1.62, width=3.2, sharex=True, sharey=True)
    several = cells["hardware"].nunique() > 1
    for panel, ((hardware, size, context, options), own) in zip(panels, places, strict=True):
        _draw_shares(panel, own, shares, phases)
        title = [short(hardware, 34)] if several else []
        title += [f"{size_name(size, own['parameters'].iloc[0])}, context {context:,.0f}"]
        title += [short(options, 34)] if options else []
        panel.set_title("\n".join(title))
    for panel in spare:
        panel.set_visible(False)
    for panel in panels[-len(facets.columns) :]:  # the lowest of a column names the phases
        panel.tick_params(axis="x", labelbottom=True)
    for row in facets.axes:
        row[0].set_ylabel("matmul (%)")
    whole = words(cells, "GPU time", "operators' time")
    facets.name_axes(x=f"phase, and the share of matmul in its {whole}", more=more_places)
    return facets.figure


def _draw_shares(panel, own: pd.DataFrame, shares: dict, phases: list[str]) -> None:
    """A line a precision from phase to phase, a dotted one with fused attention on top."""
    panel.set_xlim(-0.25, len(phases) - 1 + (1.05 if len(phases) > 1 else 0.4))
    panel.set_ylim(0, 104)
    panel.set_yticks([0, 25, 50, 75, 100])
    panel.set_xticks(range(len(phases)), phases)
    ends, lost = [], []
    for precision in ordered(own["precision"], key=precision_rank):
        cells = own[own["precision"] == precision].to_dict("records")
        found: dict[str, tuple[float, float]] = {}
        for cell in cells:
            lost += [f"{precision}{unusual(cell)}: {trouble(cell)}"] if trouble(cell) else []
            found = {**shares[cell["cell"]], **found} if cell["mode"] != "step" else {**found, **shares[cell["cell"]]}
        places = [at for at, phase in enumerate(phases) if phase in found]
        if not places:
            continue
        matmul = [found[phases[at]][0] for at in places]
        total = [sum(found[phases[at]]) for at in places]
        look = precision_look(precision)
        panel.plot(places, matmul, **look)
        name, text = short(precision, 10), colours.precision_text(precision)
        ends.append((f"{name} {matmul[-1]:.0f} %", places[-1], matmul[-1], text))
        if max(both - alone for both, alone in zip(total, matmul, strict=True)) > 0.5:
            panel.plot(places, total, **look | {"linestyle": (0, (1, 1.5)), "markerfacecolor": colours.PAPER})
            ends.append((f"+ attention {total[-1]:.0f} %", places[-1], total[-1], text))
    label_lines(panel, ends, gap=0.105)
    if lost:
        panel.text(0.02, 0.03, "\n".join(lost), transform=panel.transAxes, fontsize=6.5, color=colours.MUTED)


# Launches -------------------------------------------------------------------------------------------------------------

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
    cells = cells_in_order(plainly_recorded(tables["profile"]))
    kernels = by_phase(tables, "phases", "kernels_per_step")
    seen = by_phase(tables, "phases", "kernels_by_thread_rule_per_step")
    if cells.empty or not kernels:
        return theme.empty(NOTHING)
    machines = [cells[cells["hardware"] == name] for name in machine_labels(cells["hardware"])]
    grids = [(_at_usual_context(own), _over_context(own)) for own in machines]
    columns = ("size", "context") if any(len(right) for _, right in grids) else ("size",)
    lines = [max(len(part) for part in grid) for grid in grids]
    height, ratios = 0.55 + 0.2 * sum(lines) / len(lines), [count + 0.5 for count in lines]
    facets = Facets(grids, columns, height, width=4.2 if len(columns) == 2 else 6.4, height_ratios=ratios)
    several = len(grids) > 1
    drawn: set[str] = set()
    unseen = False
    for grid, row in facets:
        for panel, part, by in zip(row, grid, columns, strict=False):
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
            row[0].set_title(f"{short(grid[0]['hardware'].iloc[0], 40)}: {title}")
    facets.name_axes(x=words(cells, "kernels launched in a step", "operators run in a step"))
    first = " or ".join(phase for phase in ("inference", "forward") if phase in drawn)
    names = {"inference": first, "forward": f"{first} (with the loss)", "other": "outside the phases"}
    shown = [name for name in (*PHASES, "other") if name in drawn and not (name == "inference" and "forward" in drawn)]
    handles = [Patch(color=_phase_colour(name), linewidth=0, label=names.get(name, name)) for name in shown]
    if unseen:
        look = {"color": colours.PHASE["backward"], "alpha": PALE, "linewidth": 0}
        handles.append(Patch(**look, label="paler: launched by another thread"))
    theme.legend(facets.figure, handles, len(handles), loc="outside upper right")
    return facets.figure


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
    """A cell a bar, paler where another thread launched; what differs in `by` stands apart."""
    longest = max((sum(count for _, count, _ in parts) for parts in bars), default=0) or 1
    names, places, before = [], [], None
    text = {"va": "center", "fontsize": 6.5}
    for cell, parts in zip(part.to_dict("records"), bars, strict=True):
        place = (places[-1] + (1 if cell[by] == before else 1.35)) if places else 0.0
        places.append(place)
        group = size_name(cell["size"]) if by == "size" else f"{cell['context']:,.0f}"
        names.append(f"{group}  {cell['precision']}{unusual(cell)}{doubts(cell)}")
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
    bar_axis(panel, places, names)
    panel.set_ylim(places[-1] + 0.6, -0.6)
    panel.set_xlim(0, longest * 1.13)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    first = part.iloc[0]
    panel.set_title(
        f"by size, context {first['context']:,.0f}" if by == "size" else f"by context, {size_name(first['size'])}"
    )


# Categories by phase --------------------------------------------------------------------------------------------------


def draw_categories(tables) -> Figure:
    """Stacked bars of categories by phase, a row of panels for each size and context, a column a precision."""
    cells, times = traced(tables)
    if cells.empty:
        return theme.empty(NOTHING)
    rows = list(cells.groupby(["hardware", "size", "context", "options", "mode"], sort=False))
    more_rows, rows = len(rows) - MOST_ROWS, rows[:MOST_ROWS]
    precisions = ordered(cells["precision"], key=precision_rank)
    phases = {key: [name for name in PHASES if any((cell, name) in times for cell in own["cell"])] for key, own in rows}
    heights = [0.36 + 0.17 * max(len(found), 1) for found in phases.values()]
    ratios = [max(len(found), 1) + 0.1 for found in phases.values()]
    width = 4.2 if len(precisions) > 1 else 6.4
    facets = Facets(rows, precisions, sum(heights) / len(rows), width=width, height_ratios=ratios)
    several = cells["hardware"].nunique() > 1
    for (key, own), line in facets:
        hardware, size, context, _, _ = key
        longest = max((sum(times.get((cell, name), {}).values()) for cell in own["cell"] for name in PHASES), default=0)
        for precision, panel in zip(precisions, line, strict=True):
            found = own[own["precision"] == precision].to_dict("records")
            _draw_categories(panel, found[0] if found else None, times, phases[key], longest)
        name = f"{size_name(size)}, context {context:,.0f}{unusual(own.iloc[0])}"
        line[0].set_title(f"{short(hardware, 28)}: {name}" if several else name, fontsize=7.5)
        for panel in line[1:]:
            panel.tick_params(axis="y", labelleft=False)
    for precision, panel in zip(precisions, facets.axes[0], strict=True):
        panel.set_title(precision, loc="right", color=colours.precision_text(precision))
    drawn = {name for found in times.values() for name, spent in found.items() if spent > 0}
    handles = [Patch(color=colour, label=name) for name, colour in colours.CATEGORY.items() if name in drawn]
    theme.legend(facets.figure, handles, min(len(handles), 6))
    facets.name_axes(x=words(cells, "GPU time", "time in operators") + " (ms per step)", more=more_rows)
    return facets.figure


def _draw_categories(panel, cell: dict | None, times: dict, phases: list[str], longest: float) -> None:
    """A phase a bar, its total beside it (ms per step)."""
    panel.set_xlim(0, (longest or 1) * 1.13)
    bar_axis(panel, range(len(phases)), phases)
    panel.set_ylim(max(len(phases), 1) - 0.45, -0.55)
    panel.locator_params(axis="x", nbins=5)
    panel.xaxis.set_major_formatter(tick)
    if cell is None:
        panel.set_axis_off()
        return
    if not any((cell["cell"], phase) in times for phase in phases):
        text = trouble(cell) or "no trace"
        panel.text(0.01, 0.5, text, transform=panel.transAxes, va="center", fontsize=7, color=colours.MUTED)
    for place, phase in enumerate(phases):
        spent = times.get((cell["cell"], phase), {})
        *_, end = stack(panel, place, [(spent.get(name, 0.0), colour) for name, colour in colours.CATEGORY.items()])
        if end:
            panel.text(end + 0.012 * longest, place, significant(end), va="center", fontsize=6.5)
