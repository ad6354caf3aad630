"""A roofline (Williams, Waterman and Patterson 2009): the rates that parts of a step reach, over
the operations that they do for each byte, below what the machine allows."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme, words
from stepscope.results.tables import Tables

WORK = ["flop", "bytes", "gpu_time"]
NAMES = words.SHORT | {  # range: what it is called, where that is another
    "RoPE(Q)": "RoPE",
    "RoPE(K)": "RoPE",
    "attention norm": "norms",
    "FFN norm": "norms",
    "final norm": "norms",
}
AREA = 900  # square points of a mark that stands for all of the time
FAR = 1.5  # that its neighbour does more operations a byte, from which on a mark stands by itself


def plain_ranges(tables: Tables) -> pd.DataFrame:
    """The named ranges of the largest plain step that was profiled."""
    rows = tables.rows("modules", options="", mode="step", kind="module")
    return places.main_step(tables, rows)


def points(tables: Tables, ranges: pd.DataFrame) -> pd.DataFrame:
    """WORK by the names of ranges, forward, and of the optimizer of their step."""
    steps = tables.rows("phases", cell=set(ranges["cell"]), phase="optimizer")
    every = pd.concat([ranges, steps.assign(module="optimizer")])
    known = every[every["gpu_time"] > 0].dropna(subset=WORK)
    return known.groupby(known["module"].replace(NAMES))[WORK].sum()


def roofline(tables: Tables) -> Figure | None:
    """Of the plain step: a mark for each part, and right of those that are near each other their
    names, below the roof."""
    ranges = plain_ranges(tables)
    rows = points(tables, ranges)
    copies, products = (places.best_rates(tables, of) for of in ("copy", "matmul"))
    # Of a type that is no precision there is no roof, and the optimizer alone needs none.
    if copies.empty or len(rows) < 2 or ranges["built"].iloc[0] not in products:
        return None

    copy, most = copies.iloc[0], products[ranges["built"].iloc[0]]
    unit, scale = words.rate_unit(most)
    rows["x"] = rows["flop"] / rows["bytes"]
    rows["y"] = rows["flop"] / rows["gpu_time"] / scale
    rows["size"] = np.sqrt(AREA * rows["gpu_time"] / rows["gpu_time"].sum())
    rows = rows.sort_values("x")
    ends = rows["x"].agg(["min", "max"]) * [0.4, 12]
    low, high = rows["y"].min() / 8, rows["y"].max() * 6
    across = np.array([ends["min"], most / copy, ends["max"]])
    roof = np.minimum(across * copy, most) / scale

    figure, panel = theme.single(3.1, f"{words.place(ranges.iloc[0])}; areas are times")
    rates = f"{words.number(most / scale)} {unit}, {words.number(copy / 1e9)} GB/s"
    panel.set(xscale="log", yscale="log", xlim=ends, ylim=(low, high), title=f"the roof: {rates}")
    panel.set(xlabel="operations a byte", ylabel=unit)
    marks.log_axis(panel.xaxis, *ends)
    marks.log_axis(panel.yaxis, low, high)
    panel.plot(across, roof, label="roof", **marks.DASHED | {"color": colours.MUTED})

    for _, near in rows.groupby((rows["x"].pct_change() > FAR).cumsum()):
        right = near["x"].max() * 1.25
        top = np.interp(right, across, roof)
        labels: list[marks.End] = []
        for name, row in near.sort_values("y", ascending=False).iterrows():
            kind = "elementwise" if row["x"] < 10 else "matmul"
            colour = colours.of("category", "optimizer" if name == "optimizer" else kind)
            look = {"markersize": row["size"], "alpha": 0.6, "markeredgewidth": 0}
            panel.plot(row["x"], row["y"], "o", color=colour, label=name, **look)
            top = min(top / 1.8, row["y"])
            labels.append((str(name), right, top, colour))
        marks.label_ends(panel, labels)

    return figure
