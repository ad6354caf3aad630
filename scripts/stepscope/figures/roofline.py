"""A roofline (Williams, Waterman and Patterson 2009): the rates that parts of a step reach, over
the operations that they do for each byte, below what the machine allows."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme, words
from stepscope.figures.where import plain_waterfall
from stepscope.results.tables import Tables

WORK = ["flop", "bytes", "time"]
NAMES = {  # range, kind of kernels or phase: what it is called, where that is another
    "QKV projection": "QKV",
    "attention scores": "scores",
    "attention × V": "× V",
    "output projection": "output",
    "RoPE(Q)": "RoPE",
    "RoPE(K)": "RoPE",
    "attention norm": "norms",
    "FFN norm": "norms",
    "final norm": "norms",
    "matmul": "matrix products",
}
KINDS = {"optimizer": "optimizer", "fused attention": "fused attention"}  # whose colours they have
AREA = 900  # square points of a mark that stands for all of the time
LINE = 0.065  # of a panel's height that a name takes
FAR = 1.5  # that its neighbour does more operations a byte, from which on a mark stands by itself


def plain_ranges(tables: Tables) -> pd.DataFrame:
    """The named ranges of the largest plain step that was profiled."""
    rows = tables.rows("modules", options="", mode="step", kind="module")
    return places.main_step(tables, rows)


def points(tables: Tables, cell: str) -> pd.DataFrame:
    """WORK of a profiled cell's parts by their names, the longest first: of its ranges, forward, or
    else of its kinds of kernels; and of the optimizer."""
    named = {"module": "part", "category": "part", "gpu_time": "time"}
    own = tables.rows("modules", cell=cell, kind="module")
    if not own["bytes"].any():
        own = tables.rows("categories", cell=cell, phase="step")
    optimizer = tables.rows("phases", cell=cell, phase="optimizer").assign(part="optimizer")
    every = pd.concat([rows.rename(columns=named) for rows in (own, optimizer)])
    known = every[every["time"] > 0].dropna(subset=WORK)
    by = known.groupby(known["part"].replace(NAMES))
    return by[WORK].sum().sort_values("time", ascending=False)


def roofline(tables: Tables) -> Figure | None:
    """Of the plain step and, where it was profiled, of that with all changes of the ladder."""
    plain = plain_ranges(tables)
    cells = dict.fromkeys(plain["cell"].head(1), "plain")
    found = plain_waterfall(tables)
    if found:
        cells |= dict.fromkeys([step.cell for step in found.steps[1:]], "all changes")
    shown = {cell: points(tables, cell) for cell in cells}
    shown = {cell: own for cell, own in shown.items() if len(own)}
    copies, products = (places.best_rates(tables, of) for of in ("copy", "matmul"))
    # Of a type that is no precision there is no roof, and the optimizer alone needs none.
    most_parts = max(map(len, shown.values()), default=0)
    if copies.empty or most_parts < 2 or plain["built"].iloc[0] not in products:
        return None

    every = pd.concat(shown.values())
    ends = (every["flop"] / every["bytes"]).agg(["min", "max"]) * [0.4, 12]
    subject = words.place(plain.iloc[0]) + "; areas are times"
    figure, panels = theme.panels(len(shown), 1, 0.6 + 2.5 * len(shown), subject, sharex=True)
    for panel, (cell, own) in zip(panels, shown.items(), strict=True):
        precision = tables.row("cells", cell=cell)["precision"]
        most = products.get(precision, math.nan)
        unit, scale = words.rate_unit(most)
        rates = f"{words.number(most / scale)} {unit}, {words.number(copies.iloc[0] / 1e9)} GB/s"
        panel.set_title(f"{cells[cell]}, {precision}; the roof: {rates}")
        panel.set(xscale="log", yscale="log", xlim=ends, ylabel=unit)
        _parts(panel, own, scale, copies.iloc[0], most)
        across = np.array([ends["min"], most / copies.iloc[0], ends["max"]])
        roof = np.minimum(across * copies.iloc[0], most) / scale
        panel.plot(across, roof, label="roof", **marks.DASHED | {"color": colours.MUTED})
    marks.log_axis(panels[-1].xaxis, *ends)
    panels[-1].set_xlabel("operations a byte")
    return figure


def _parts(panel: Axes, own: pd.DataFrame, scale: float, copy: float, most: float) -> None:
    """A mark for each, and right of those that are near each other their names, below the roof."""
    rows = own.assign(x=own["flop"] / own["bytes"], y=own["flop"] / own["time"] / scale)
    low, high = rows["y"].min() / 8, rows["y"].max() * 6
    panel.set_ylim(low, high)
    marks.log_axis(panel.yaxis, low, high)
    sizes = np.sqrt(AREA * rows["time"] / rows["time"].sum())
    rows = rows.assign(markersize=sizes).sort_values("x")
    cluster = (rows["x"].pct_change() > FAR).cumsum()
    line = (high / low) ** LINE
    for _, near in rows.groupby(cluster):
        labels: list[marks.End] = []
        right = near["x"].max() * 1.25
        top = min(right * copy, most) / scale
        ordered = near.sort_values("y", ascending=False)
        for row in ordered.reset_index().to_dict("records"):
            name = row["part"]
            kind = KINDS.get(name, "elementwise" if row["x"] < 10 else "matmul")
            colour = colours.of("category", kind)
            look = {"markersize": row["markersize"], "alpha": 0.6, "markeredgewidth": 0}
            marks.point(panel, row["x"], row["y"], colour, name, **look)
            top = min(top / line, row["y"])
            labels.append((name, right, top, colour))
        marks.names_beside(panel, labels)
