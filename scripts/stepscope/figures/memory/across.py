"""Figures across the memory study's cells: peaks over the context, what is alive at them, and the prediction."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.labels import short, tick, trouble
from stepscope.figures.marks import (
    End,
    bar_axis,
    label_lines,
    mark_out_of_memory,
    precision_lines,
    precision_look,
    room_for_lost,
    stack,
)
from stepscope.figures.memory.data import (
    CATEGORIES,
    NOTHING,
    Grid,
    context_axis,
    in_unit,
    measured,
    name_rows,
    rows_of,
)
from stepscope.report.kit.formatting import fixed, known, significant
from stepscope.report.kit.order import ordered, precision_rank

# Peaks over the context -----------------------------------------------------------------------------------------------

FARTHEST = 4.0  # times the longest context: where the axis may end
MOST_PREDICTED = 2.0  # times the card: predictions above are not drawn
FAR = 3.0  # times the highest measured peak: a card above is not drawn
LINE = 0.075  # of the panel's height: a line of small text
OOM = {"linestyle": "none", "marker": "X", "markersize": 5.5, "markeredgewidth": 1, "markerfacecolor": colours.PAPER}
PREDICTED = {
    "marker": "D",
    "markersize": 3.8,
    "markerfacecolor": colours.PAPER,
    "linestyle": (0, (1, 1.5)),
    "linewidth": 0.9,
}
TOO_LONG = {"marker": "v", "markersize": 4.5, "linestyle": "none"}
RESERVED = {"linestyle": (0, (3, 2)), "linewidth": 0.9, "alpha": 0.65, "marker": "_", "markersize": 5}


def draw_peaks(tables) -> Figure:
    """Peak memory over the context, a line a precision, a panel for each size and mode, with the card's capacity."""
    cells = measured(tables)
    if len(cells):
        cells = cells.dropna(subset=["context"])
        cells = cells[cells["peak_bytes"].notna() | (cells["status"] == "oom")]
    if cells.empty:
        return theme.empty(NOTHING)
    cells, unit, _ = in_unit(cells)
    grid = Grid(cells)
    facets, panels = grid.panels(1.95)
    for panel, own in zip(panels, grid.parts, strict=True):
        contexts = list(cells.loc[cells["hardware"] == own["hardware"].iloc[0], "context"])
        _draw_peaks(panel, own, contexts, 5 if grid.narrow else 7)
    name_rows(panels, f"peak ({unit})")
    facets.name_axes(x="context (tokens, log scale)", more=grid.more_rows)
    _legend(facets.figure, cells)
    return facets.figure


def _legend(figure: Figure, cells: pd.DataFrame) -> None:
    ink = {"color": colours.MUTED}
    handles = [Line2D([], [], marker="o", markersize=3, label="allocated", **ink)]
    if cells["reserved"].notna().any():
        handles.append(Line2D([], [], label="reserved", **ink, **RESERVED))
    if (cells["status"] == "oom").any():
        handles.append(Line2D([], [], label="out of memory", markeredgecolor=colours.MUTED, **OOM))
        handles.append(Line2D([], [], label="predicted peak, does not fit", **ink, **PREDICTED))
    if cells["predicted_first_context_too_long"].notna().any():
        handles.append(Line2D([], [], label="first context predicted not to fit", **ink, **TOO_LONG))
    theme.legend(figure, handles, len(handles), columnspacing=1.4)


class Scale:
    """The y axis of a panel: `high`, and `card`, the capacity, None where it is unknown or too far above."""

    def __init__(self, own: pd.DataFrame):
        sizes = pd.concat([own["peak"], own["reserved"]]).dropna()
        capacity = own["card"].max()
        self.capacity = capacity if known(capacity) else None
        highest = max(sizes, default=0.0)
        near = self.capacity is not None and (self.capacity <= FAR * highest or (own["status"] == "oom").any())
        self.card = self.capacity if near else None
        beyond = _beyond(own, self.card)["predicted"]
        highest = max([highest, *([self.card] if near else []), *beyond]) or 1.0
        lines = len(set(_too_long(own).values())) if self.capacity is not None else 0
        self.high = max(highest * 1.06, (self.card or highest) / (1 - LINE * (lines + 0.5 + (not near))))


def _beyond(cells: pd.DataFrame, card: float | None) -> pd.DataFrame:
    """Cells that ran out of memory and whose predicted peak can be drawn; `card`: its capacity."""
    lost = cells[(cells["status"] == "oom") & cells["predicted"].notna()]
    return lost if card is None else lost[lost["predicted"] <= MOST_PREDICTED * card]


def _draw_peaks(panel, own: pd.DataFrame, contexts: list[float], ticks: int) -> None:
    scale, too_long = Scale(own), _too_long(own)
    panel.set_ylim(0, scale.high)
    panel.locator_params(axis="y", nbins=6)
    panel.yaxis.set_major_formatter(tick)
    reached = [value for value in too_long.values() if value <= FARTHEST * max(contexts)]
    context_axis(panel, contexts, max(reached, default=0) * 1.15 if scale.card else 0.0, ticks)
    ends, lost = [], {}
    for precision in ordered(own["precision"], key=precision_rank):
        line = own[own["precision"] == precision].sort_values("context")
        ends += _draw_line(panel, precision, line, scale)
        for context in line.loc[line["status"] == "oom", "context"]:
            lost.setdefault(context, []).append(colours.precision(precision))
    _mark_lost(panel, lost, scale)
    if scale.capacity is not None:
        _mark_card(panel, too_long, scale)
    _label_peaks(panel, ends)


def _draw_line(panel, precision: str, line: pd.DataFrame, scale: Scale) -> list[End]:
    """Allocated and reserved of one precision, and what is predicted beyond; the line's end for its label."""
    fits = line[(line["status"] != "oom") & line["peak"].notna()]
    over, colour = _beyond(line, scale.card), colours.precision(precision)
    if len(over):
        path = list(over[["context", "predicted"]].itertuples(index=False, name=None))
        before = list(fits[["context", "peak"]].tail(1).itertuples(index=False, name=None))
        limit = _too_long(line).get(precision)
        if before and scale.card is not None and limit and before[0][0] < limit < path[0][0]:
            before.append((limit, scale.card))
        marks = list(range(len(before), len(before) + len(path)))
        panel.plot(*zip(*before, *path, strict=True), color=colour, markevery=marks, **PREDICTED)
    if fits.empty:
        return []
    panel.plot(fits["context"], fits["peak"], **precision_look(precision))
    panel.plot(fits["context"], fits["reserved"], color=colour, **RESERVED)
    end, text = fits.iloc[-1], colours.precision_text(precision)
    lower = 0.12 * scale.high if len(over) else 0.0  # below the line that goes on
    return [(short(precision, 10), end["context"], end["peak"] - lower, text)]


def _mark_lost(panel, lost: dict[float, list[str]], scale: Scale) -> None:
    """A hollow cross for each (context, colour) that ran out of memory, on the card's line and below it."""
    top, step = (scale.card or 0.95 * scale.high), scale.high * 0.075
    for context, there in lost.items():
        for rank, colour in enumerate(there):
            panel.plot([context], [top - step * rank], markeredgecolor=colour, zorder=4, label="OOM", **OOM)
        height = top - step * (len(there) - 0.4)
        panel.text(context, height, "OOM", ha="center", va="top", fontsize=6, color=colours.MUTED)


def _label_peaks(panel, ends: list[End]) -> None:
    """Names at the lines' ends, each beside its own."""
    by_place: dict[float, list[End]] = {}
    for end in ends:
        by_place.setdefault(end[1], []).append(end)
    for own in by_place.values():
        label_lines(panel, own, gap=0.08)


def _too_long(own: pd.DataFrame) -> dict[str, float]:
    """Precision → the first context (tokens) that is predicted not to fit, as the longest cell tells it."""
    told = own.dropna(subset=["predicted_first_context_too_long"]).sort_values("context")
    return told.groupby("precision")["predicted_first_context_too_long"].last().to_dict()


def _mark_card(panel, too_long: dict[str, float], scale: Scale) -> None:
    """The card's line, on it the first contexts that are predicted not to fit, at the right edge if they are beyond; in
    words if the card is far above the panel."""
    name = f"the card: {significant(scale.capacity)}"
    words = {"fontsize": 6.5, "textcoords": "offset points"}
    alike: dict[float, list[str]] = {}
    for precision in sorted(too_long, key=too_long.get):
        alike.setdefault(too_long[precision], []).append(precision)
    if scale.card is None:
        texts = [(f"{name}, far above", colours.MUTED)]
        texts += [(f"{', '.join(own)}: predicted not to fit from {context:,.0f}", colours.precision_text(own[0]))
                  for context, own in alike.items()]  # fmt: skip
        for rank, (text, colour) in enumerate(texts):
            panel.annotate(text, (0, 1), (3, -8.5 * rank), xycoords="axes fraction", va="top", color=colour, **words)
        return
    panel.axhline(scale.card, color=colours.INK, linewidth=0.8, label="capacity")
    panel.annotate(name, (0, scale.card), (3, 2), xycoords=panel.get_yaxis_transform(), va="bottom",
                   color=colours.MUTED, **words)  # fmt: skip
    right, half = panel.get_xlim()[1], (len(alike) + 1) // 2
    for rank, (context, own) in enumerate(alike.items()):
        if context <= right:
            look = {"color": colours.precision(own[0]), "zorder": 4, "label": "too long"}
            panel.plot([context], [scale.card], **look, **TOO_LONG)
        # The smaller ones above on the left, the others below on the right: the lines pass between them.
        above = rank < half or context > right
        shift = 3 + 8 * (half - 1 - rank if rank < half else rank) if above else -4 - 8 * (rank - half)
        look = {"color": colours.precision_text(own[0]), "va": "bottom" if above else "top"}
        look |= {"ha": "right" if above else "left"}
        text = f"{context:,.0f}" + (" ▸" if context > right else "")
        panel.annotate(text, (min(context, right), scale.card), (-2 if above else 3, shift), **look, **words)


# What was alive at the peak -------------------------------------------------------------------------------------------

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
    facets, panels = grid.panels(0.5 + (BAR + 0.06) * max(map(len, grid.parts)))
    for panel, own in zip(panels, grid.parts, strict=True):
        _draw_bars(panel, own.to_dict("records"), alive, grid.narrow)
    there = {name for found in alive.values() for name, size in found.items() if size > 0}
    handles = [Patch(color=colours.MEMORY[name], linewidth=0, label=name) for name in CATEGORIES if name in there]
    if (cells["status"] == "oom").any():
        handles.append(Patch(fill=False, label="predicted", **GHOST))
    if any(line.get_label() == "capacity" for panel in panels for line in panel.lines):
        handles.append(Line2D([], [], color=colours.INK, linewidth=0.8, label="the card"))
    look = {"ncols": min(len(handles), 10), "columnspacing": 1.1, "handlelength": 1.4}
    theme.legend(facets.figure, handles, **look)
    facets.name_axes(x=f"alive at the peak ({name}), by context and precision", more=grid.more_rows)
    return facets.figure


def alive_at_peak(tables) -> dict[str, dict[str, float]]:
    """Cell → category → bytes at its peak; a name that is not known counts as `unknown`."""
    found: dict[str, dict[str, float]] = {}
    for row in rows_of(tables, "peak").to_dict("records"):
        if known(row["bytes"]) and row["bytes"] > 0:
            own = found.setdefault(row["cell"], {})
            name = row["category"] if row["category"] in colours.MEMORY else "unknown"
            own[name] = own.get(name, 0.0) + row["bytes"]
    return found


def _draw_bars(panel, own: list[dict], alive: dict, narrow: bool) -> None:
    """One panel, a cell a bar, contexts apart. narrow: whether more than two panels are in a row."""
    totals = [sum(alive.get(cell["cell"], {}).values()) for cell in own]
    longest = max(totals) or 1.0
    longest = max([longest, *(min(_predicted(cell), MOST_OVER * longest) for cell in own)])
    panel.set_xlim(0, longest * (1.36 if narrow else 1.18))
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
    bar_axis(panel, places, names)
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
    sizes = [held.get(name, 0.0) for name in CATEGORIES]
    ends = stack(panel, place, [(size, colours.MEMORY[name]) for name, size in zip(CATEGORIES, sizes, strict=True)])
    look = {"ha": "center", "va": "center_baseline", "fontsize": 6, "color": colours.ON_BAR}
    for left, size in zip(ends, sizes, strict=False):
        if size > wide:
            panel.text(left + size / 2, place, significant(size), **look)


# The prediction against what was measured -----------------------------------------------------------------------------

BAND = 5.0  # per cent


def draw_predicted(tables) -> Figure:
    """Difference over the context, a line a precision, a panel for each size and mode."""
    cells = measured(tables)
    if len(cells):
        cells = cells.assign(difference=differences(cells)).dropna(subset=["context"])
    if cells.empty or cells["difference"].isna().all():
        return theme.empty("No peak was both measured and predicted: nothing to draw.")
    cells = cells.assign(lost=cells["status"] == "oom")
    grid = Grid(cells[cells["difference"].notna() | cells["lost"]])
    facets, panels = grid.panels(1.35, sharey=True)
    most = max(BAND * 1.3, 1.2 * cells["difference"].abs().max())
    for panel, own in zip(panels, grid.parts, strict=True):
        _draw_differences(panel, own, grid.cells["context"], most, 5 if grid.narrow else 7)
    name_rows(panels, "difference (%)")
    facets.name_axes(x="context (tokens, log scale); predicted over measured peak, less one", more=grid.more_rows)
    return facets.figure


def differences(cells: pd.DataFrame) -> pd.Series:
    """Predicted over measured peak less one, in per cent, of each cell that did not run out of memory."""
    told = cells["predicted_peak_bytes"].where(cells["status"] == "ok")
    return 100 * (told / cells["peak_bytes"] - 1)


def _draw_differences(panel, own: pd.DataFrame, contexts: pd.Series, most: float, ticks: int) -> None:
    panel.set_ylim(-most, most * (1 + 2 * room_for_lost(own[own["lost"]], ["context"])))
    context_axis(panel, list(contexts), most=ticks)
    panel.axhspan(-BAND, BAND, color=colours.SHADE, linewidth=0, zorder=0.4)
    panel.axhline(0, color=colours.MUTED, linewidth=0.6)
    ends, lost = precision_lines(panel, own, "context", "difference")
    right = panel.get_xlim()[1]
    ends = [
        (f"{name} {signed(value)} %", right if context == contexts.max() else context, value, colour)
        for name, context, value, colour in ends
    ]
    label_lines(panel, ends, gap=0.12)
    mark_out_of_memory(panel, lost)


def signed(value: float) -> str:
    """A difference with its sign and one digit after the point: +0.4, −1.2."""
    return ("+" if value >= 0.05 else "") + fixed(value if abs(value) >= 0.05 else 0.0, 1)
