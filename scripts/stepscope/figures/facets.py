"""Small multiples: one grid of panels for every figure, with what stands around the panels; and what gets a panel."""

import math
import textwrap
from collections.abc import Iterator, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.labels import omitted, short
from stepscope.report.kit.order import column, machine_places, precision_rank, with_order

LETTER = 0.062  # inches of a letter of 8 points, on average
MOST_PANELS = 5
MOST_SIZES = 9


class Facets:
    """Rows × columns of panels, `height` inches a row and at most `width` a column.

    A row's key may be a dict, column of a frame → value (or list of values): it selects the row's part of a frame.
    """

    def __init__(self, rows: Sequence, columns: Sequence, height: float, width: float = 2.9, **kwargs):
        self.rows, self.columns = list(rows), list(columns)
        wide, high = 1.2 + width * len(self.columns), height * len(self.rows) + 0.55
        self.figure = Figure(figsize=(min(theme.WIDTH, wide), high), layout="constrained")
        self.figure.get_layout_engine().set(w_pad=0.05, h_pad=0.05, wspace=0.02, hspace=0.03)
        axes = self.figure.subplots(len(self.rows), len(self.columns), squeeze=False, **kwargs)
        self.axes: list[list[Axes]] = [list(row) for row in axes]
        self._heads: dict[int, float] = {}

    def __iter__(self) -> Iterator[tuple]:
        """(key, its panels) of each row."""
        return zip(self.rows, self.axes, strict=True)

    def parts(self, frame: pd.DataFrame, by: str) -> Iterator[tuple[Axes, pd.DataFrame, pd.DataFrame]]:
        """(panel, its rows of a frame, those of its whole row of panels); `by`: in what the columns differ."""
        for key, panels in self:
            line = part(frame, **key)
            line = line[line[by].isin(self.columns)]
            for value, panel in zip(self.columns, panels, strict=True):
                yield panel, line[line[by] == value], line

    def name_columns(self, names: Sequence[str], row: int = 0, pad: float = 4.0, centred: bool = False) -> None:
        """Bold names above a row of panels, `pad` points above them."""
        self._heads[row] = pad
        for name, panel in zip(names, self.axes[row], strict=False):
            look = {"fontweight": "bold", "fontsize": 8, "ha": "center" if centred else "left"}
            above(panel, name, pad, 0.5 if centred else 0.0, **look)

    def name_group(self, row: int, name: str) -> None:
        """What a row and those below it share, such as the machine: above the row, and its columns' names if any."""
        pad = self._heads[row] + 13 if row in self._heads else 6
        self.axes[row][0].set_title(short(name, 60), color=colours.MUTED, fontweight="normal", pad=pad)

    def first_rows(self, key) -> dict:
        """Value of `key` of the rows' keys → the first row that has it."""
        found: dict = {}
        for row, each in enumerate(self.rows):
            found.setdefault(each[key], row)
        return found

    def name_axes(self, x: str = "", y: str = "", more: int = 0) -> None:
        """What is drawn over what, once for all panels, with fixed parameters, and how many are in the tables alone."""
        if y:
            self.figure.supylabel(y, fontsize=8)
        if x:
            letters = int(self.figure.get_figwidth() / LETTER)
            self.figure.supxlabel(textwrap.fill(f"{x}{omitted(more)}", letters), fontsize=8)


def wrapped(count: int, columns: int, height: float, width: float = 2.9, **kwargs) -> tuple[Facets, list, list]:
    """A grid that is filled row by row: the grid, so many panels in their order, and those that are left over."""
    columns = min(columns, count)
    grid = Facets(range(-(-count // columns)), range(columns), height, width, **kwargs)
    panels = [panel for row in grid.axes for panel in row]
    return grid, panels[:count], panels[count:]


def above(panel: Axes, text: str, pad: float, at: float = 0.0, **look):
    """Words `pad` points above a panel, from a share of its width on."""
    place = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False, "va": "bottom"}
    return panel.annotate(text, (at, 1), (0, pad), **place | look)


def part(frame: pd.DataFrame, **values) -> pd.DataFrame:
    """The rows of a frame that have these values; a list stands for any of them."""
    mask = pd.Series(True, index=frame.index)
    for name, value in values.items():
        mask &= frame[name].isin(value) if isinstance(value, list) else frame[name] == value
    return frame[mask]


def pick(values: list, most: int) -> list:
    """At most so many, evenly spread, with the first and the last."""
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def apart(values: list[float], least: float = 0.09) -> list[bool]:
    """Which of the sorted values to name on a log axis, so that names are `least` of its length apart."""
    length = math.log(values[-1] / values[0]) or 1.0
    kept, last = [], -math.inf
    for value in values:
        kept.append(math.log(value) - last >= least * length)
        last = math.log(value) if kept[-1] else last
    return kept


def sizes_in_order(frame: pd.DataFrame) -> dict[str, float]:
    """Model size → its parameters, the smallest first."""
    return frame.groupby("size")["parameters"].max().sort_values().to_dict()


def cells_in_order(cells: pd.DataFrame) -> pd.DataFrame:
    """A study's cells by hardware, parameters, size, context, options and precision, in one order for all figures.

    `mode` is never missing; `options` also tells a batch size that is not the usual one. Repeated cells stand once.
    """
    if cells.empty:
        return cells
    cells = with_order(cells)
    cells = cells.assign(mode=column(cells, "mode").fillna("step").str.replace("_", "-"))
    if "batch" in cells and cells["batch"].notna().any():
        usual = cells["batch"].mode()[0]
        other = cells["batch"].map(lambda batch: "" if batch == usual or pd.isna(batch) else f"batch={batch:.0f}")
        cells["options"] = (cells["options"] + " " + other).str.strip()
    alike = ["hardware", "size", "context", "precision", "mode", "options"]
    cells = cells[cells["repeat"] == cells.groupby(alike)["repeat"].transform("min")]
    cells = cells.assign(
        _machine=machine_places(cells["hardware"]),
        _rank=cells["precision"].map(precision_rank),
        _size=cells.groupby("size")["parameters"].transform("max").fillna(float("inf")),
        _mode=cells["mode"] == "step",
    )
    order = ["_machine", "_size", "size", "context", "options", "_mode", "mode", "_rank"]
    cells = cells.sort_values(order, kind="stable").reset_index(drop=True)
    return cells.drop(columns=["_machine", "_rank", "_size", "_mode"])
