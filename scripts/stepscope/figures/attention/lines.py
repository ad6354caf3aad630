"""Lines of the attention study's figures: an implementation each, over lengths or head dimensions, both axes log."""

import pandas as pd
from matplotlib.ticker import FixedLocator, NullLocator

from stepscope.figures import colours, theme
from stepscope.figures.attention.data import measured, of_one_shape, precision_groups, series
from stepscope.report.kit.order import machine_labels, ordered

MARKERS = {"naive": "o", "compiled": "s", "sdpa-flash": "^", "sdpa-cudnn": "v", "sdpa-efficient": "D", "flex": "P",
           "triton": "h"}  # fmt: skip
MOST_ROWS = 8
GUIDE = 1.7  # how far below a line the guide ends
LINE = 0.075  # of the panel's height: a line of small text
EDGE = 1.25


def rows_to_draw(tables, number: str) -> pd.DataFrame:
    """Rows of one shape with a fixed batch, none if no row has the number."""
    rows = measured(tables)
    rows = rows.iloc[:0] if rows[number].isna().all() else of_one_shape(rows, varying_batch=False)
    return rows.iloc[:0] if rows[number].isna().all() else rows


def machines_and_precisions(rows: pd.DataFrame) -> list[dict]:
    """`hardware` and `precisions` of each row of panels."""
    machines = {hardware: rows[rows["hardware"] == hardware] for hardware in machine_labels(rows["hardware"])}
    return [
        {"hardware": hardware, "precisions": group}
        for hardware, own in machines.items()
        for group in precision_groups(own)
    ]


def chosen(rows: pd.DataFrame, hardware: str, precisions: list[str], **values) -> pd.DataFrame:
    """Rows of a machine and some precisions, and of one value of other columns."""
    mask = (rows["hardware"] == hardware) & rows["precision"].isin(precisions)
    for name, value in values.items():
        mask &= rows[name] == value
    return rows[mask]


def limits(values: pd.Series, room: float = 0.0, below: float = 1.9) -> tuple[float, float]:
    """Limits of a log axis: from the least over `below`, with so much of the height free above the most."""
    values = values.dropna()
    if values.empty:
        return 0.1, 10.0
    low, high = values.min() / below, values.max() * 1.6
    return low, high * (high / low) ** (room / (1 - room))


def room_for_lost(rows: pd.DataFrame, places: list[str]) -> float:
    """The share of the height that the crosses need where memory ran out, at one place at most."""
    lost = rows[rows["status"] == "oom"].drop_duplicates([*places, "implementation"])
    return theme.room_for_out_of_memory(int(lost.groupby(places).size().max()) if len(lost) else 0)


def log_axes(panel, ticks: list[float], height: tuple[float, float], top: float) -> None:
    """Both axes log: x with ticks at measured values, y from and to `height`, with ticks up to about `top`."""
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(min(ticks) / EDGE, max(ticks) * EDGE)
    panel.set_ylim(*height)
    theme.log_axis(panel.yaxis, height[0], min(height[1], top))
    places = panel.yaxis.get_major_locator().tick_values(*height)
    panel.yaxis.set_major_locator(FixedLocator([place for place in places if height[0] <= place <= 1.6 * top]))
    panel.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    panel.xaxis.set_minor_locator(NullLocator())


def draw_lines(panel, own: pd.DataFrame, x: str, y: str, intervals: bool = True) -> list[tuple[str, float, float, str]]:
    """A line for each implementation and precision, hollow where it is doubtful, a cross where memory ran out.

    Returns the lines' ends for `theme.label_lines`; y: a column in the axis' unit.
    """
    ends, lost = [], []
    for name, implementation, precision, line in series(own):
        colour = colours.attention(implementation)
        lost += [(place, colour) for place in line.loc[line["status"] == "oom", x]]
        line = line.dropna(subset=[y]).sort_values(x)
        if line.empty:
            continue
        look = {"color": colour, "marker": MARKERS.get(implementation, "."), "markersize": 3.2, "label": name}
        panel.plot(line[x], line[y], linestyle=colours.DASHES.get(precision, "solid"), linewidth=1.1, **look)
        doubtful = line[line["doubtful"]]
        if intervals:
            theme.draw_intervals(panel, line[x], line["ci_low_ms"], line["ci_high_ms"], colour)
            hollow = look | {"markerfacecolor": colours.PAPER, "linestyle": "none", "label": f"{name}, doubtful"}
            panel.plot(doubtful[x], doubtful[y], zorder=2.5, **hollow)
        ends.append((theme.short(name, 20), line[x].iloc[-1], line[y].iloc[-1], colours.attention_text(implementation)))
    theme.mark_out_of_memory(panel, list(dict.fromkeys(lost)))
    return ends


def guide(panel, power: int, name: str, x: list[float], ends: list[tuple[float, float]], is_named: bool = True) -> None:
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


def label(panel, ends: list[tuple[str, float, float, str]], gap: float = 0.085) -> None:
    """`theme.label_lines`, but right of the panel and not above it, where a label would push the rows apart."""
    theme.label_lines(panel, ends, gap)
    top = 1.0 - gap / 2
    own = panel.texts[len(panel.texts) - len(ends) :]
    for text in sorted(own, key=lambda text: -text.get_position()[1]):
        x, y = text.get_position()
        text.set_position((max(x, 1.02), min(y, top)))
        top = min(y, top) - gap


def note(panel, lines: list[str], below: float = 0.0) -> None:
    """Small words in the upper left corner, which lines that grow leave free; below: a share of the height."""
    look = {"transform": panel.transAxes, "va": "top", "fontsize": 6, "color": colours.MUTED}
    for rank, text in enumerate(lines):
        panel.text(0.025, 0.985 - below - LINE * rank, text, **look)
