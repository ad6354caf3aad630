"""A roofline (Williams, Waterman and Patterson 2009): the rates that parts of a step reach, over
the operations that they do for each byte, below what the machine allows."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope.results.tables import Tables

from . import colours, marks, places, theme, words
from .where import led

WORK = ["flop", "bytes", "time"]
NAMES = words.SHORT | {  # range or kind of kernels: what it is called, where that is another
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
    plain = plain_ranges(tables).head(1)
    titles = dict.fromkeys(led(tables)["profile"][1:], "all changes")
    titles = dict.fromkeys(plain["cell"], "plain") | titles
    parts = [points(tables, cell).assign(cell=cell) for cell in titles]
    copies, products = (places.best_rates(tables, of) for of in ("copy", "matmul"))
    # Of a type that is no precision there is no roof, and the optimizer alone needs none.
    most_parts = max(map(len, parts), default=0)
    if copies.empty or most_parts < 2 or plain["built"].iloc[0] not in products:
        return None

    every = pd.concat(parts)
    every["x"] = every["flop"] / every["bytes"]
    ends = every["x"].agg(["min", "max"]) * [0.4, 12]
    shown = list(every.groupby("cell", sort=False))
    height = 0.6 + 2.65 * len(shown)
    figure, panels = theme.panels(len(shown), 1, height, "areas are times", sharex=True)
    for panel, (cell, own) in zip(panels, shown, strict=True):
        step = tables.row("cells", cell=cell)
        copy, most = copies.iloc[0], products.get(step["precision"], math.nan)
        unit, scale = words.rate_unit(most)
        rates = f"{words.number(most / scale)} {unit}, {words.number(copy / 1e9)} GB/s"
        place = words.place(step | {"built": step["precision"]})
        panel.set_title(f"{place}: {titles[str(cell)]}\nthe roof: {rates}")
        panel.set(xscale="log", yscale="log", xlim=ends, ylabel=unit)
        across = np.array([ends["min"], most / copy, ends["max"]])
        roof = np.minimum(across * copy, most) / scale
        _parts(panel, own.assign(y=own["flop"] / own["time"] / scale), across, roof)
        panel.plot(across, roof, label="roof", **marks.DASHED | {"color": colours.MUTED})
    marks.log_axis(panels[-1].xaxis, *ends)
    panels[-1].set_xlabel("operations a byte")
    return figure


def _parts(panel: Axes, rows: pd.DataFrame, across: np.ndarray, roof: np.ndarray) -> None:
    """A mark for each, and right of those that are near each other their names, below the roof,
    which leads through these points."""
    low, high = rows["y"].min() / 8, rows["y"].max() * 6
    panel.set_ylim(low, high)
    marks.log_axis(panel.yaxis, low, high)
    rows = rows.assign(markersize=np.sqrt(AREA * rows["time"] / rows["time"].sum()))
    rows = rows.sort_values("x")
    cluster = (rows["x"].pct_change() > FAR).cumsum()
    line = (high / low) ** LINE
    for _, near in rows.groupby(cluster):
        labels: list[marks.End] = []
        right = near["x"].max() * 1.25
        top = np.interp(right, across, roof)
        ordered = near.sort_values("y", ascending=False)
        for row in ordered.reset_index().to_dict("records"):
            kind = KINDS.get(row["part"], "elementwise" if row["x"] < 10 else "matmul")
            colour = colours.of("category", kind)
            look = {"markersize": row["markersize"], "alpha": 0.6, "markeredgewidth": 0}
            panel.plot(row["x"], row["y"], "o", color=colour, label=row["part"], **look)
            top = min(top / line, row["y"])
            labels.append((row["part"], right, top, colour))
        marks.label_ends(panel, labels)
