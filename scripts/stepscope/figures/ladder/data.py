"""What the ladder study's figures share: the ladders that are drawn, their panels and titles."""

from matplotlib.figure import Figure

from stepscope.figures import theme
from stepscope.figures.choosing import pick
from stepscope.report.data.ladder import Ladder, ladders
from stepscope.report.kit.formatting import known

NOTHING = "No rung of the ladder has been measured: nothing to draw."
MOST = 8  # ladders in a figure
WORDS = {"oom": "OOM"}


def drawn(tables, keep) -> tuple[list[Ladder], int]:
    """The ladders for which `keep` is true, at most MOST of them, and how many are left out."""
    found = [one for one in ladders(tables) if keep(one)]
    shown = pick(found, MOST)
    return shown, len(found) - len(shown)


def title(one: Ladder, several: bool) -> str:
    """`small · 129M, context 128`, the hardware above it where there are several."""
    count = f" · {theme.parameter_number(one.parameters)}" if known(one.parameters) else ""
    name = f"{theme.short(one.size, 14)}{count}, context {one.context:,.0f}"
    return f"{theme.short(one.hardware, 40)}\n{name}" if several else name


def are_several(shown: list[Ladder]) -> bool:
    """Whether the ladders are of several machines."""
    return len({one.hardware for one in shown}) > 1


def trouble(row: dict) -> str:
    """Why a cell has no time, in a word."""
    status = str(row["status"] or "missing")
    return "" if status == "ok" else WORDS.get(status, status)


def two_columns(count: int, height: float) -> tuple[Figure, list]:
    """The figure and its panels, two in a row; `height` inches each."""
    columns = min(count, 2)
    lines = -(-count // columns)
    figure, axes = theme.panels(lines, columns, height, width=4.2)
    panels = [panel for line in axes for panel in line]
    for panel in panels[count:]:
        panel.set_axis_off()
    return figure, panels[:count]
