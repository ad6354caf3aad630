"""Figure: what was alive at the peak, by category."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stepscope.figures import colours, theme
from stepscope.figures.memory.data import CATEGORIES, NOTHING, Grid, alive_at_peak, in_unit, measured
from stepscope.figures.profile.data import left_out, tick, trouble
from stepscope.report.kit.formatting import known, significant

BAR, BETWEEN = 0.19, 0.3  # inches a bar; gap between contexts in bars
MOST_OVER = 1.45  # a prediction is drawn up to so many times the largest measured peak
NUMBER = 0.055  # of the panel's width: what a number needs where there are two panels in a row
GHOST = {"edgecolor": colours.MUTED, "linewidth": 0.7, "linestyle": (0, (2, 2))}


def draw_peak_categories(tables) -> Figure:
    """Stacked bars, a panel for each size and mode, the precisions of a context beside each other."""
    cells, alive = measured(tables), alive_at_peak(tables)
    if cells.empty or not alive:
        return theme.empty(NOTHING)
    cells, name, scale = in_unit(cells)
    alive = {cell: {kind: size / scale for kind, size in held.items()} for cell, held in alive.items()}
    grid = Grid(cells)
    most = max(len(grid.of(key, size)) for key in grid.rows for size in grid.sizes)
    figure, places = grid.panels(0.5 + (BAR + 0.06) * most)
    for _, _, panel, own in places:
        _draw_bars(panel, own.to_dict("records"), alive, grid.narrow)
    there = {name for found in alive.values() for name, size in found.items() if size > 0}
    handles = [Patch(color=colours.MEMORY[name], linewidth=0, label=name) for name in CATEGORIES if name in there]
    if (cells["status"] == "oom").any():
        handles.append(Patch(fill=False, label="predicted", **GHOST))
    if any(line.get_label() == "capacity" for *_, panel, _ in places for line in panel.lines):
        handles.append(Line2D([], [], color=colours.INK, linewidth=0.8, label="the card"))
    figure.legend(
        handles=handles, loc="outside upper left", ncols=min(len(handles), 10), columnspacing=1.1, handlelength=1.4
    )
    words = f"alive at the peak ({name}), by context and precision{left_out(grid.more_rows)}"
    figure.supxlabel(words, fontsize=8)
    return figure


def _draw_bars(panel, own: list[dict], alive: dict, narrow: bool) -> None:
    """One panel, a cell a bar, contexts apart. narrow: whether more than two panels are in a row."""
    totals = [sum(alive.get(cell["cell"], {}).values()) for cell in own]
    longest = max(totals) or 1.0
    longest = max([longest, *(min(_predicted(cell), MOST_OVER * longest) for cell in own)])
    panel.set_xlim(0, longest * (1.36 if narrow else 1.18))
    panel.grid(False, axis="y")
    panel.tick_params(axis="y", length=0)
    panel.xaxis.set_major_formatter(tick)
    panel.locator_params(axis="x", nbins=6)
    names, places, before = [], [], None
    for cell in own:
        begins = cell["context"] != before
        before = cell["context"]
        places.append(places[-1] + 1 + BETWEEN * begins if places else 0.0)
        names.append(f"{cell['context']:,.0f}   {cell['precision']}" if begins else cell["precision"])
        _stacked(panel, places[-1], alive.get(cell["cell"], {}), NUMBER * (1.8 if narrow else 1) * panel.get_xlim()[1])
    for place, cell, total in zip(places, own, totals, strict=True):
        _draw_end(panel, place, cell, total, longest)
    card = max((cell["card"] for cell in own), default=0)
    if known(card) and card < panel.get_xlim()[1]:
        panel.axvline(card, color=colours.INK, linewidth=0.8, label="capacity")
    panel.set_yticks(places, names)
    panel.set_ylim(places[-1] + 0.55, -0.55)


def _draw_end(panel, place: float, cell: dict, total: float, longest: float) -> None:
    """The sum beside a bar, or why there is none; a dashed bar up to the prediction where memory ran out."""
    beyond, colour = _predicted(cell), colours.INK
    text = " ".join(filter(None, [significant(total) if total else "", trouble(cell)])) or "nothing recorded"
    if beyond > total:
        panel.barh(place, min(beyond, longest) - total, left=total, height=0.78, fill=False, **GHOST)
        total, text, colour = min(beyond, longest), f"{trouble(cell)}, {significant(beyond)}", colours.MUTED
    panel.text(total + 0.01 * longest, place, text, va="center_baseline", fontsize=6.5, color=colour)


def _predicted(cell: dict) -> float:
    """The predicted peak of a cell that ran out of memory, else 0."""
    value = cell["predicted"]
    return value if trouble(cell) == "OOM" and known(value) else 0.0


def _stacked(panel, place: float, held: dict[str, float], wide: float) -> None:
    """One cell's categories, with the size of those that are as wide as a number."""
    left = 0.0
    for name in CATEGORIES:
        size = held.get(name, 0.0)
        if size > 0:
            panel.barh(place, size, left=left, height=0.78, color=colours.MEMORY[name], linewidth=0)
            if size > wide:
                panel.text(left + size / 2, place, significant(size), ha="center", va="center_baseline", fontsize=6,
                           color=colours.ON_BAR)  # fmt: skip
            left += size
