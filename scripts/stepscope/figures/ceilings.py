"""Figure of the ceilings study: the measured matmul and copy rates."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.facets import Facets
from stepscope.figures.labels import short
from stepscope.figures.marks import bar_axis
from stepscope.report.kit.formatting import significant
from stepscope.report.kit.order import machine_labels, precision_rank

MOST_BARS = 24


def draw_ceilings(tables) -> Figure:
    """Bars of matmul rate by precision (TFLOP/s) and of copy rate (GB/s), with the interval of the median."""
    ceilings = tables["ceilings"]
    if ceilings.empty or ceilings["median_ms"].notna().sum() == 0:
        return theme.empty("No ceiling has been measured: nothing to draw.")
    rows = {
        operation: _bars(ceilings, operation, rate) for operation, rate in (("matmul", "tflops"), ("copy", "gb_per_s"))
    }
    count = max(len(bars) for bars in rows.values())
    facets = Facets([0], rows, 0.35 + 0.26 * count, width=4.2)
    several = ceilings["hardware"].nunique() > 1
    for panel, (operation, bars), unit in zip(facets.axes[0], rows.items(), ("TFLOP/s", "GB/s"), strict=True):
        _draw(panel, bars, several, count)
        panel.set_title("matrix product" if operation == "matmul" else operation)
        panel.set_xlabel(unit)
    return facets.figure


def _bars(ceilings: pd.DataFrame, operation: str, rate: str) -> list[tuple]:
    """(hardware, precision, rate, lowest, highest) of each bar; the rate's interval comes from the time's."""
    found = ceilings[(ceilings["operation"] == operation) & ceilings[rate].notna()]
    bars = []
    for hardware in machine_labels(found["hardware"]):
        own = found[found["hardware"] == hardware].sort_values("precision", key=lambda names: names.map(precision_rank))
        for row in own.to_dict("records"):
            low, high = (row[rate] * row["median_ms"] / row[side] for side in ("ci_high_ms", "ci_low_ms"))
            bars.append((hardware, row["precision"], row[rate], low, high))
    return bars[:MOST_BARS]


def _draw(panel, bars: list[tuple], several: bool, count: int) -> None:
    for place, (_, precision, rate, low, high) in enumerate(bars):
        panel.barh(place, rate, height=0.7, color=colours.precision(precision))
        if pd.notna(low) and pd.notna(high):
            panel.errorbar(
                [rate], [place], xerr=[[rate - low], [high - rate]], color=colours.INK, elinewidth=1, capsize=3
            )
        end = high if pd.notna(high) else rate
        panel.annotate(significant(rate), (end, place), (7, 0), textcoords="offset points", va="center")
    names = [f"{short(bar[0], 26)}, {bar[1]}" if several else str(bar[1] or "") for bar in bars]
    bar_axis(panel, range(len(bars)), [short(name, 40) for name in names])
    panel.set_ylim(count - 0.4, -0.6)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    panel.set_xlim(0, max((bar[2] for bar in bars), default=1) * 1.2)


FIGURES = {"ceilings": draw_ceilings}
