"""What the memory study's figures draw: its cells in order with their peaks, and a grid of panels by size."""

import pandas as pd

from stepscope import colours
from stepscope.figures.facets import Facets, cells_in_order, part, pick
from stepscope.figures.labels import byte_unit, short, size_name
from stepscope.figures.marks import log_axis
from stepscope.report.kit.order import column, machine_labels, ordered, plainly_recorded

NOTHING = "No memory cell has been measured: nothing to draw."
CATEGORIES = tuple(colours.MEMORY)
MOST_ROWS, MOST_SIZES = 8, 6
NUMBERS = ("peak_allocated_bytes", "peak_reserved_bytes", "predicted_peak_bytes", "capacity_total_bytes",
           "predicted_first_context_too_long", "baseline_model_bytes", "baseline_first_step_bytes")  # fmt: skip


def measured(tables, cell: str | None = None) -> pd.DataFrame:
    """The study's cells in one order for all figures, or one cell; NUMBERS are floats, missing where they are not
    known, and so is `peak_bytes`: the allocator's counter, on a CPU the recording's largest sum."""
    table = tables["memory"]
    cells = cells_in_order(plainly_recorded(table) if cell is None else table[table["cell"] == cell])
    if cells.empty:
        return cells
    numbers = {name: pd.to_numeric(column(cells, name), errors="coerce").astype(float) for name in NUMBERS}
    cells = cells.assign(**{name: values.where(values > 0) for name, values in numbers.items()})
    recorded = rows_of(tables, "summary")
    recorded = recorded.groupby("cell")["peak_bytes"].max() if "peak_bytes" in recorded else pd.Series(dtype=float)
    peaks = cells["peak_allocated_bytes"].fillna(cells["cell"].map(recorded))
    return cells.assign(peak_bytes=peaks.where(peaks > 0))


def in_unit(cells: pd.DataFrame) -> tuple[pd.DataFrame, str, float]:
    """`measured` cells with `peak`, `reserved`, `predicted` and `card` in one unit, its name and its bytes."""
    name, scale = byte_unit(cells[["peak_bytes", "predicted_peak_bytes"]].max(axis=None))
    names = {"peak": "peak_bytes", "reserved": "peak_reserved_bytes", "predicted": "predicted_peak_bytes",
             "card": "capacity_total_bytes"}  # fmt: skip
    return cells.assign(**{new: cells[old] / scale for new, old in names.items()}), name, scale


def rows_of(tables, name: str, cell: str | None = None) -> pd.DataFrame:
    """Rows of `memory_NAME`, of one cell if given; without a table, a frame without rows that has the key."""
    table = tables[f"memory_{name}"]
    if "cell" not in table:
        return pd.DataFrame(columns=["cell"])
    return table if cell is None else table[table["cell"] == cell]


class Grid:
    """Small multiples: rows for each (hardware, options, mode), the training step first, a panel for each size; more
    than three sizes take two rows."""

    def __init__(self, cells: pd.DataFrame):
        self.cells = cells
        keys = cells[["hardware", "options", "mode"]].drop_duplicates().to_dict("records")
        place = machine_labels(cells["hardware"]).index
        keys.sort(key=lambda key: (place(key["hardware"]), key["options"], key["mode"] != "step", key["mode"]))
        self.rows, self.more_rows = keys[:MOST_ROWS], len(keys) - MOST_ROWS
        self._parameters = cells.groupby("size")["parameters"].max()
        by_size = self._parameters.fillna(float("inf")).sort_values(kind="stable")
        self.sizes = pick(list(by_size.index), MOST_SIZES)
        self.columns = len(self.sizes) if len(self.sizes) <= 3 else -(-len(self.sizes) // 2)
        self.narrow = self.columns > 2
        parts = [(key, size, part(cells, **key, size=size)) for key in self.rows for size in self.sizes]
        self.parts = [own for _, _, own in parts if len(own)]
        """The cells of each panel."""
        self._places = [(at, key, size) for at, (key, size, own) in enumerate(parts) if len(own)]

    def panels(self, height: float, **kwargs) -> tuple[Facets, list]:
        """The grid with a panel for each of the parts, and those panels."""
        lines, several = -(-len(self.sizes) // self.columns), self.cells["hardware"].nunique() > 1
        width = 2.9 if self.narrow else 4.2
        facets = Facets(range(lines * len(self.rows)), range(self.columns), height, width=width, **kwargs)
        for panel in (panel for line in facets.axes for panel in line):
            panel.set_axis_off()
        panels = []
        for at, key, size in self._places:
            row, place = divmod(at, len(self.sizes))
            panel = facets.axes[row * lines + place // self.columns][place % self.columns]
            title = f"{size_name(size, self._parameters[size])}, {key['mode'].replace('-', ' + ')}"
            title += f", {short(key['options'], 34)}" if key["options"] else ""
            panel.set_title(f"{short(key['hardware'], 34)}\n{title}" if several else title)
            panel.set_axis_on()
            panels.append(panel)
        return facets, panels


def name_rows(panels: list, label: str) -> None:
    """The name of the y axis at the first panel of each row."""
    first = {}
    for panel in panels:
        first.setdefault(panel.get_subplotspec().rowspan.start, panel)
    for panel in first.values():
        panel.set_ylabel(label)


def context_axis(panel, contexts: list[float], right: float = 0.0, most: int = 7) -> None:
    """A log axis with ticks at the contexts that were measured (tokens), at most so many, up to `right`."""
    places = pick(ordered(contexts), most)
    panel.set_xscale("log")
    panel.set_xlim(min(places) / 1.15, max(right, max(places) * 1.15))
    log_axis(panel.xaxis, 1, 10)
    panel.set_xticks(places, [f"{place:,.0f}" for place in places])
    panel.minorticks_off()
