"""What the memory study's figures draw: its cells in order, the peak of each in bytes, and what was alive then."""

import pandas as pd

from stepscope.figures import colours, theme
from stepscope.figures.choosing import pick
from stepscope.figures.profile.data import profiled
from stepscope.report.kit.formatting import known, significant
from stepscope.report.kit.order import column, machine_labels, ordered

NOTHING = "No memory cell has been measured: nothing to draw."
CATEGORIES = tuple(colours.MEMORY)
GIB = 2**30
MOST_ROWS, MOST_SIZES = 8, 6
NUMBERS = ("peak_allocated_bytes", "peak_reserved_bytes", "predicted_peak_bytes", "capacity_total_bytes",
           "predicted_first_context_too_long", "baseline_model_bytes", "baseline_first_step_bytes")  # fmt: skip


def measured(tables, cell: str | None = None) -> pd.DataFrame:
    """The study's cells in one order for all figures, or one cell; NUMBERS are floats, missing where they are not
    known, and so is `peak_bytes`: the allocator's counter, on a CPU the recording's largest sum."""
    table = tables["memory"]
    cells = profiled({"profile": table if cell is None else table[table["cell"] == cell]})
    if cells.empty:
        return cells
    numbers = {name: pd.to_numeric(column(cells, name), errors="coerce").astype(float) for name in NUMBERS}
    cells = cells.assign(**{name: values.where(values > 0) for name, values in numbers.items()})
    recorded = rows_of(tables, "summary")
    recorded = recorded.groupby("cell")["peak_bytes"].max() if "peak_bytes" in recorded else pd.Series(dtype=float)
    peaks = cells["peak_allocated_bytes"].fillna(cells["cell"].map(recorded))
    return cells.assign(peak_bytes=peaks.where(peaks > 0))


def unit(largest: float) -> tuple[str, float]:
    """(name, bytes) of the unit of an axis that reaches so many bytes."""
    return ("GiB", GIB) if not largest < 0.1 * GIB else ("MiB", 2.0**20)


def in_unit(cells: pd.DataFrame) -> tuple[pd.DataFrame, str, float]:
    """`measured` cells with `peak`, `reserved`, `predicted` and `card` in one unit, its name and its bytes."""
    name, scale = unit(cells[["peak_bytes", "predicted_peak_bytes"]].max(axis=None))
    names = {"peak": "peak_bytes", "reserved": "peak_reserved_bytes", "predicted": "predicted_peak_bytes",
             "card": "capacity_total_bytes"}  # fmt: skip
    return cells.assign(**{short: cells[long] / scale for short, long in names.items()}), name, scale


def rows_of(tables, name: str, cell: str | None = None) -> pd.DataFrame:
    """Rows of `memory_NAME`, of one cell if given; without a table, a frame without rows that has the key."""
    table = tables[f"memory_{name}"]
    if "cell" not in table:
        return pd.DataFrame(columns=["cell"])
    return table if cell is None else table[table["cell"] == cell]


def alive_at_peak(tables) -> dict[str, dict[str, float]]:
    """Cell → category → bytes at its peak; a name that is not known counts as `unknown`."""
    found: dict[str, dict[str, float]] = {}
    for row in rows_of(tables, "peak").to_dict("records"):
        if known(row["bytes"]) and row["bytes"] > 0:
            own = found.setdefault(row["cell"], {})
            name = row["category"] if row["category"] in colours.MEMORY else "unknown"
            own[name] = own.get(name, 0.0) + row["bytes"]
    return found


class Grid:
    """Small multiples: rows for each (hardware, options, mode), the training step first, a panel for each size; more
    than three sizes take two rows."""

    def __init__(self, cells: pd.DataFrame):
        self.cells = cells
        keys = cells[["hardware", "options", "mode"]].drop_duplicates().itertuples(index=False, name=None)
        place = machine_labels(cells["hardware"]).index
        keys = sorted(keys, key=lambda key: (place(key[0]), key[1], key[2] != "step", key[2]))
        self.rows, self.more_rows = keys[:MOST_ROWS], len(keys) - MOST_ROWS
        by_size = cells.groupby("size")["parameters"].max().fillna(float("inf")).sort_values(kind="stable")
        self.sizes = pick(list(by_size.index), MOST_SIZES)
        self.columns = len(self.sizes) if len(self.sizes) <= 3 else -(-len(self.sizes) // 2)
        self.narrow = self.columns > 2
        self.several = cells["hardware"].nunique() > 1

    def panels(self, height: float, **kwargs):
        """The figure, and for each panel (row's key, size, its axes, its cells)."""
        lines = -(-len(self.sizes) // self.columns)
        width = 2.9 if self.narrow else 4.2
        figure, axes = theme.panels(lines * len(self.rows), self.columns, height, width=width, **kwargs)
        for panel in (panel for line in axes for panel in line):
            panel.set_axis_off()
        places = [
            (key, size, axes[row * lines + at // self.columns][at % self.columns], self.of(key, size))
            for row, key in enumerate(self.rows)
            for at, size in enumerate(self.sizes)
        ]
        places = [place for place in places if len(place[-1])]
        for (hardware, options, mode), size, panel, _ in places:
            count = self.cells.loc[self.cells["size"] == size, "parameters"].max()
            name = theme.short(size, 14) + (f" · {theme.parameter_number(count)}" if pd.notna(count) else "")
            title = f"{name}, {mode.replace('-', ' + ')}" + (f", {theme.short(options, 34)}" if options else "")
            panel.set_title(f"{theme.short(hardware, 34)}\n{title}" if self.several else title)
            panel.set_axis_on()
        return figure, places

    def of(self, key: tuple[str, str, str], size: str) -> pd.DataFrame:
        """A panel's cells."""
        cells = self.cells
        alike = (cells[["hardware", "options", "mode"]] == list(key)).all(axis=1)
        return cells[alike & (cells["size"] == size)]


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
    theme.log_axis(panel.xaxis, 1, 10)
    panel.set_xticks(places, [f"{place:,.0f}" for place in places])
    panel.minorticks_off()


def size_text(size: float) -> str:
    """Bytes in the unit that suits them: 156 MiB, 13.7 GiB."""
    for unit, scale in (("GiB", GIB), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{significant(size / scale, 3)} {unit}"
    return f"{size:.0f} B"
