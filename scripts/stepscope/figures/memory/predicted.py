"""Figure: the peak that the closed form predicts, against the measured one."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, theme
from stepscope.figures.memory.data import Grid, context_axis, measured, name_rows
from stepscope.figures.profile.data import left_out
from stepscope.report.kit.formatting import fixed
from stepscope.report.kit.order import ordered, precision_rank

BAND = 5.0  # per cent


def differences(cells: pd.DataFrame) -> pd.Series:
    """Predicted over measured peak less one, in per cent, of each cell that did not run out of memory."""
    told = cells["predicted_peak_bytes"].where(cells["status"] == "ok")
    return 100 * (told / cells["peak_bytes"] - 1)


def draw_predicted(tables) -> Figure:
    """Difference over the context, a line a precision, a panel for each size and mode."""
    cells = measured(tables)
    if len(cells):
        cells = cells.assign(difference=differences(cells)).dropna(subset=["context"])
    if cells.empty or cells["difference"].isna().all():
        return theme.empty("No peak was both measured and predicted: nothing to draw.")
    grid = Grid(cells[cells["difference"].notna() | (cells["status"] == "oom")])
    figure, places = grid.panels(1.35, sharey=True)
    most = max(BAND * 1.3, 1.2 * cells["difference"].abs().max())
    for _, _, panel, own in places:
        _draw(panel, own, grid.cells["context"], most, 5 if grid.narrow else 7)
    name_rows([panel for *_, panel, _ in places], "difference (%)")
    words = f"context (tokens, log scale); predicted over measured peak, less one{left_out(grid.more_rows)}"
    figure.supxlabel(words, fontsize=8)
    return figure


def _draw(panel, own: pd.DataFrame, contexts: pd.Series, most: float, ticks: int) -> None:
    lost = own[own["status"] == "oom"]
    crosses = int(lost.groupby("context").size().max()) if len(lost) else 0
    panel.set_ylim(-most, most * (1 + 2 * theme.room_for_out_of_memory(crosses)))
    context_axis(panel, list(contexts), most=ticks)
    panel.axhspan(-BAND, BAND, color=colours.SHADE, linewidth=0, zorder=0.4)
    panel.axhline(0, color=colours.MUTED, linewidth=0.6)
    ends = []
    for precision in ordered(own["precision"], key=precision_rank):
        line = own[(own["precision"] == precision)].dropna(subset=["difference"]).sort_values("context")
        if line.empty:
            continue
        look = {"linestyle": colours.DASHES.get(precision, "solid"), "marker": "o", "markersize": 3}
        panel.plot(line["context"], line["difference"], color=colours.precision(precision), label=precision, **look)
        last = line.iloc[-1]
        text = f"{theme.short(precision, 10)} {signed(last['difference'])} %"
        place = panel.get_xlim()[1] if last["context"] == contexts.max() else last["context"]
        ends.append((text, place, last["difference"], colours.precision_text(precision)))
    theme.label_lines(panel, ends, gap=0.12)
    theme.mark_out_of_memory(panel, [(row.context, colours.precision(row.precision)) for row in lost.itertuples()])


def signed(value: float) -> str:
    """A difference with its sign and one digit after the point: +0.4, −1.2."""
    return ("+" if value >= 0.05 else "") + fixed(value if abs(value) >= 0.05 else 0.0, 1)
