"""Figure: peak memory over the context, with what the card holds and what is predicted not to fit."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stepscope.figures import colours, theme
from stepscope.figures.memory.data import NOTHING, Grid, context_axis, in_unit, measured, name_rows
from stepscope.figures.profile.data import left_out, tick
from stepscope.report.kit.formatting import known, significant
from stepscope.report.kit.order import ordered, precision_rank

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
    figure, places = grid.panels(1.95)
    for (hardware, *_), _, panel, own in places:
        _draw(panel, own, list(cells.loc[cells["hardware"] == hardware, "context"]), 5 if grid.narrow else 7)
    name_rows([panel for *_, panel, _ in places], f"peak ({unit})")
    figure.supxlabel(f"context (tokens, log scale){left_out(grid.more_rows)}", fontsize=8)
    _legend(figure, cells)
    return figure


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
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), columnspacing=1.4)


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


def _draw(panel, own: pd.DataFrame, contexts: list[float], ticks: int) -> None:
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
    _label(panel, ends)


def _draw_line(panel, precision: str, line: pd.DataFrame, scale: Scale) -> list[tuple]:
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
    dashes = {"linestyle": colours.DASHES.get(precision, "solid"), "label": precision}
    panel.plot(fits["context"], fits["peak"], color=colour, marker="o", markersize=3, **dashes)
    panel.plot(fits["context"], fits["reserved"], color=colour, **RESERVED)
    end, text = fits.iloc[-1], colours.precision_text(precision)
    lower = 0.12 * scale.high if len(over) else 0.0  # below the line that goes on
    return [(theme.short(precision, 10), end["context"], end["peak"] - lower, text)]


def _mark_lost(panel, lost: dict[float, list[str]], scale: Scale) -> None:
    """A hollow cross for each (context, colour) that ran out of memory, on the card's line and below it."""
    top, step = (scale.card or 0.95 * scale.high), scale.high * 0.075
    for context, there in lost.items():
        for rank, colour in enumerate(there):
            panel.plot([context], [top - step * rank], markeredgecolor=colour, zorder=4, label="OOM", **OOM)
        height = top - step * (len(there) - 0.4)
        panel.text(context, height, "OOM", ha="center", va="top", fontsize=6, color=colours.MUTED)


def _label(panel, ends: list[tuple]) -> None:
    """Names at the lines' ends, each beside its own."""
    by_place: dict[float, list] = {}
    for end in ends:
        by_place.setdefault(end[1], []).append(end)
    for own in by_place.values():
        theme.label_lines(panel, own, gap=0.08)


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
