"""Figures of what attention costs over the length and over the head dimension: lines, an implementation each."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.attention.data import (
    DIRECTIONS,
    measured,
    of_one_shape,
    precision_groups,
    series,
    shape_words,
    without_number,
)
from stepscope.figures.facets import Facets, apart, part, pick
from stepscope.figures.labels import short
from stepscope.figures.marks import (
    HOLLOW,
    End,
    draw_line,
    label_inside,
    log_axis,
    mark_out_of_memory,
    raised,
    room_for_lost,
)
from stepscope.report.kit.order import machine_labels, ordered

MOST_ROWS, MOST_COLUMNS = 8, 4
MIB = 2.0**20
GUIDE = 1.7  # how far below a line the guide ends
LINE = 0.075  # of the panel's height: a line of small text
EDGE = 1.25
STEEP = 4.0  # times the least: what is taken to grow with the square
PEAK = {"linestyle": (0, (3, 2)), "linewidth": 0.8, "alpha": 0.6}

# Time over the length -------------------------------------------------------------------------------------------------


def draw_time(tables) -> Figure:
    """Median time over the length, a line an implementation, a column a head dimension, forward above backward."""
    rows = _rows_to_draw(tables, "median_ms")
    if rows.empty:
        return theme.empty("No attention cell has been timed: nothing to draw.")
    keys = [key | {"direction": direction} for key in _machines_and_precisions(rows) for direction in DIRECTIONS]
    keys = [key for key in keys if len(part(rows, **key))]
    return _by_length(rows, keys, 1.72, _draw_time, lambda key: f"{_precisions(key)} {key['direction']} (ms)").figure


def _draw_time(panel, own: pd.DataFrame, line: pd.DataFrame) -> list[End]:
    times = line["median_ms"]
    _length_axes(panel, line["length"], _limits(times, _room_for_lost(line, ["d_head", "length"])), times.max())
    ends = _draw_lines(panel, own, "length", "median_ms")
    power, name = (1, "∝ length") if own["tokens"].notna().any() else (2, "∝ length²")  # a fixed batch × length
    _guide(panel, power, name, list(line["length"]), [end[1:3] for end in ends], _is_leftmost(own, line))
    _note(panel, without_number(own, "median_ms"))
    return ends


# Memory over the length -----------------------------------------------------------------------------------------------


def draw_memory(tables) -> Figure:
    """Memory before the backward pass over the length, a line an implementation, its peak lighter."""
    rows = _rows_to_draw(tables, "before_backward_bytes")
    rows = rows[rows["direction"] == "backward"]
    if rows.empty:
        return theme.empty("No memory of attention has been counted, as on a CPU: nothing to draw.")
    peak = rows["peak_bytes"].where(rows["status"] == "ok")
    rows = rows.assign(before=rows["before_backward_bytes"] / MIB, peak=peak / MIB)
    keys = _machines_and_precisions(rows)
    facets = _by_length(rows, keys, 2.3, _draw_memory, lambda key: f"{_precisions(key)} memory (MiB)")
    ink = {"color": colours.MUTED}
    handles = [Line2D([], [], marker="o", markersize=3, linewidth=1.1, label="before backward", **ink),
               Line2D([], [], label="peak of forward and backward", **ink, **PEAK)]  # fmt: skip
    theme.legend(facets.figure, handles, 2, columnspacing=1.4)
    return facets.figure


def _draw_memory(panel, own: pd.DataFrame, line: pd.DataFrame) -> list[End]:
    sizes = pd.concat([line["before"], line["peak"]])
    _length_axes(panel, line["length"], _limits(sizes, _room_for_lost(line, ["d_head", "length"])), sizes.max())
    for _, implementation, _, each in series(own):
        each = each.dropna(subset=["peak"]).sort_values("length")
        panel.plot(each["length"], each["peak"], color=colours.attention(implementation), **PEAK)
    ends = _draw_lines(panel, own, "length", "before", intervals=False)
    least, places = own.groupby("length")["before"].min(), [end[1:3] for end in ends]
    steep = [(x, y) for x, y in places if y > STEEP * least[x]]
    flat = [place for place in places if place not in steep]
    lengths, is_named = list(line["length"]), _is_leftmost(own, line)
    _guide(panel, 1, "∝ length", lengths, flat, is_named)
    _guide(panel, 2, "∝ length²", lengths, steep, is_named)
    _note(panel, without_number(own, "before"))
    return ends


# Time over the head dimension -----------------------------------------------------------------------------------------


def draw_head_dimension(tables) -> Figure:
    """Median time over the head dimension at one length, a line an implementation, a panel a direction."""
    rows = _rows_to_draw(tables, "median_ms")
    if rows.empty:
        return theme.empty("No attention cell has been timed: nothing to draw.")
    keys = _machines_and_precisions(rows)
    more, keys = len(keys) - MOST_ROWS // 2, keys[: MOST_ROWS // 2]
    facets = Facets(keys, DIRECTIONS, 2.15, width=4.2, sharey="row")
    several = rows["hardware"].nunique() > 1
    for key, panels in facets:
        own = part(rows, **key)
        length = longest_that_most_ran(own)
        own = own[own["length"] == length]
        for direction, panel in zip(DIRECTIONS, panels, strict=True):
            label_inside(panel, _draw_dimensions(panel, own[own["direction"] == direction], own), gap=0.078)
            title = f"{_precisions(key)}, length {length:,.0f}, {direction}"
            panel.set_title(f"{short(key['hardware'], 40)}\n{title}" if several else title)
            panel.tick_params(labelleft=True)
        panels[0].set_ylabel("time (ms)")
    facets.name_axes(x=f"d_head (log scale); {shape_words(rows)}", more=more)
    return facets.figure


def longest_that_most_ran(rows: pd.DataFrame) -> float:
    """The longest length that more than half of the implementations ran at, forward and backward; else the one that
    the most did. Implementation: by precision."""
    every = rows[["implementation", "precision"]].drop_duplicates()
    ran = rows.dropna(subset=["median_ms"]).groupby(["length", "implementation", "precision"])["direction"].nunique()
    counts = (ran == rows["direction"].nunique()).groupby("length").sum()
    if counts.empty:
        return rows["length"].max()
    most = counts[counts > len(every) / 2]
    return float((most if len(most) else counts[counts == counts.max()]).index.max())


def _draw_dimensions(panel, own: pd.DataFrame, row: pd.DataFrame) -> list[End]:
    ticks, times = pick(ordered(row["d_head"]), 7), row["median_ms"]
    notes = {way: without_number(each, "median_ms", "d_head") for way, each in row.groupby("direction")}
    lost = _room_for_lost(row, ["d_head", "direction"])
    room = lost + LINE * max(map(len, notes.values()), default=0)
    _log_axes(panel, ticks, _limits(times, min(room, 0.6), below=2.8), times.max())
    ends = _draw_lines(panel, own, "d_head", "median_ms")
    _guide(panel, 1, "∝ d_head", ticks, [end[1:3] for end in ends])
    _note(panel, [line for way in own["direction"].unique() for line in notes[way]], lost)
    return ends


# The rows and the grid of panels --------------------------------------------------------------------------------------


def _rows_to_draw(tables, number: str) -> pd.DataFrame:
    """Rows of one shape with a fixed batch, none if no row has the number."""
    rows = measured(tables)
    rows = rows.iloc[:0] if rows[number].isna().all() else of_one_shape(rows, varying_batch=False)
    return rows.iloc[:0] if rows[number].isna().all() else rows


def _machines_and_precisions(rows: pd.DataFrame) -> list[dict]:
    """`hardware` and `precision`, a list, of each row of panels."""
    return [
        {"hardware": hardware, "precision": group}
        for hardware in machine_labels(rows["hardware"])
        for group in precision_groups(part(rows, hardware=hardware))
    ]


def _precisions(key: dict) -> str:
    return ", ".join(key["precision"])


def _by_length(rows: pd.DataFrame, keys: list[dict], height: float, draw, name) -> Facets:
    """A row of panels for each key, `height` inches, a column for each head dimension of the row's machine.

    draw: draws a panel from (panel, its rows, the rows of its whole row of panels) and returns the lines' ends; name:
    the y axis' words of a key.
    """
    more, keys = len(keys) - MOST_ROWS, keys[:MOST_ROWS]
    machines = list(dict.fromkeys(key["hardware"] for key in keys))
    columns = {each: pick(ordered(rows.loc[rows["hardware"] == each, "d_head"]), MOST_COLUMNS) for each in machines}
    facets = Facets(keys, range(max(map(len, columns.values()))), height, sharey="row")
    for key, panels in facets:
        first = _draw_row(panels, part(rows, **key), columns[key["hardware"]], draw)
        first.set_ylabel(name(key))
        first.tick_params(labelleft=True)
    for hardware, row in facets.first_rows("hardware").items():
        for column in zip(*(panels for key, panels in facets if key["hardware"] == hardware), strict=True):
            drawn = [panel for panel in column if panel.axison]
            for panel in drawn:
                panel.tick_params(labelbottom=panel is drawn[-1])
        facets.name_columns([f"d_head {each:,.0f}" for each in columns[hardware]], row)
        if len(machines) > 1:
            facets.name_group(row, hardware)
    facets.name_axes(x=f"length (tokens, log scale); {shape_words(rows)}", more=more)
    return facets


def _draw_row(panels: list, line: pd.DataFrame, dimensions: list[float], draw):
    """Draw a panel for each head dimension that has rows, leave the others empty; the first panel that is drawn."""
    line = line[line["d_head"].isin(dimensions)]
    drawn = []
    for dimension, panel in zip(dimensions, panels, strict=False):
        own = line[line["d_head"] == dimension]
        if len(own):
            drawn.append((panel, draw(panel, own, line)))
    label_inside(*drawn[-1])
    for panel in panels:
        if panel not in [each for each, _ in drawn]:
            panel.set_axis_off()
    return drawn[0][0]


def _is_leftmost(own: pd.DataFrame, line: pd.DataFrame) -> bool:
    """Whether a panel's rows are those of the first column."""
    return own["d_head"].min() == line["d_head"].min()


# In a panel -----------------------------------------------------------------------------------------------------------


def _limits(values: pd.Series, room: float = 0.0, below: float = 1.9) -> tuple[float, float]:
    """Limits of a log axis: from the least over `below`, with so much of the height free above the most."""
    values = values.dropna()
    return raised(values.min() / below, values.max() * 1.6, room) if len(values) else (0.1, 10.0)


def _room_for_lost(rows: pd.DataFrame, places: list[str]) -> float:
    """The share of the height that the crosses need where memory ran out; precisions share theirs."""
    return room_for_lost(rows[rows["status"] == "oom"].drop_duplicates([*places, "implementation"]), places)


def _log_axes(panel, ticks: list[float], height: tuple[float, float], top: float) -> None:
    """Both axes log: x with ticks at measured values, y from and to `height`, with ticks up to about `top`."""
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(min(ticks) / EDGE, max(ticks) * EDGE)
    panel.set_ylim(*height)
    log_axis(panel.yaxis, height[0], min(height[1], top))
    places = panel.yaxis.get_major_locator().tick_values(*height)
    panel.yaxis.set_major_locator(FixedLocator([place for place in places if height[0] <= place <= 1.6 * top]))
    panel.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    panel.xaxis.set_minor_locator(NullLocator())


def _length_axes(panel, lengths: pd.Series, height: tuple[float, float], top: float) -> None:
    """`_log_axes` with ticks at those measured lengths that have room."""
    ticks = pick(ordered(lengths), 7)
    ticks = [tick for tick, has_room in zip(ticks, apart(ticks, 0.2), strict=True) if has_room]
    _log_axes(panel, ticks, height, top)
    panel.set_xlim(min(lengths) / EDGE, max(lengths) * EDGE)


def _draw_lines(panel, own: pd.DataFrame, x: str, y: str, intervals: bool = True) -> list[End]:
    """A line for each implementation and precision, hollow where it is doubtful, a cross where memory ran out.

    Returns the lines' ends for their labels; y: a column in the axis' unit.
    """
    ends, lost = [], []
    for name, implementation, precision, line in series(own):
        colour = colours.attention(implementation)
        lost += [(place, colour) for place in line.loc[line["status"] == "oom", x]]
        line = line.dropna(subset=[y]).sort_values(x)
        if line.empty:
            continue
        mark = colours.ATTENTION_MARKERS.get(implementation, ".")
        look = {"color": colour, "marker": mark, "markersize": 3.2, "linewidth": 1.1, "label": name}
        dashes = {"linestyle": colours.DASHES.get(precision, "solid")}
        draw_line(panel, line, x, y, look | dashes, ("ci_low_ms", "ci_high_ms") if intervals else None)
        if intervals:
            doubtful = line[line["doubtful"]]
            panel.plot(doubtful[x], doubtful[y], zorder=2.5, **look | HOLLOW | {"label": f"{name}, doubtful"})
        ends.append((short(name, 20), line[x].iloc[-1], line[y].iloc[-1], colours.attention_text(implementation)))
    mark_out_of_memory(panel, list(dict.fromkeys(lost)))
    return ends


def _guide(
    panel, power: int, name: str, x: list[float], ends: list[tuple[float, float]], is_named: bool = True
) -> None:
    """Dots that grow with a power of x, below all of the lines that end at (x, y); `name` stands beside them."""
    x = ordered(x)
    if len(x) < 2 or not ends:
        return
    y = min(height * (x[-1] / place) ** power for place, height in ends)
    low, end = x[0] / EDGE, y / GUIDE
    panel.plot([low, x[-1]], [end * (low / x[-1]) ** power, end], color=colours.MUTED, linewidth=0.9,
               linestyle=(0, (1, 2)), zorder=1.5, label=name)  # fmt: skip
    left, right = panel.get_xlim()
    place = left * (right / left) ** 0.7  # the name fills what is right of it, below the dots
    if is_named:
        panel.annotate(name, (right, end * (place / x[-1]) ** power), (0, -1), textcoords="offset points", va="top",
                       ha="right", fontsize=6.5, color=colours.MUTED)  # fmt: skip


def _note(panel, lines: list[str], below: float = 0.0) -> None:
    """Small words in the upper left corner, which lines that grow leave free; below: a share of the height."""
    look = {"transform": panel.transAxes, "va": "top", "fontsize": 6, "color": colours.MUTED}
    for rank, text in enumerate(lines):
        panel.text(0.025, 0.985 - below - LINE * rank, text, **look)
