"""Figure: the share of matrix products in the time of each phase."""

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, theme
from stepscope.figures.profile.data import NOTHING, PHASES, left_out, more, size_name, traced, trouble, words
from stepscope.report.kit.order import ordered, precision_rank

MOST_PANELS = 24


def matmul_shares(cell: dict, times: dict) -> dict[str, tuple[float, float]]:
    """Phase → (share of matmul, share of fused attention) in per cent of the time, of what a step's cell tells."""
    found = {}
    for phase in (*PHASES[:3], *(["step"] if cell["mode"] == "step" else [])):
        own = times.get((cell["cell"], phase), {})
        total = sum(own.values())
        if total > 0:
            found[phase] = tuple(100 * own.get(name, 0.0) / total for name in ("matmul", "fused attention"))
    return found


def draw_matmul_share(tables) -> Figure:
    """Share of matmul in each phase's time, a line a precision, a panel for each size and context."""
    cells, times = traced(tables)
    if cells.empty:
        return theme.empty(NOTHING)
    places = list(cells.groupby(["hardware", "size", "context", "options"], sort=False))
    more_places, places = len(places) - MOST_PANELS, places[:MOST_PANELS]
    shares = {cell["cell"]: matmul_shares(cell, times) for cell in cells.to_dict("records")}
    phases = [
        name for name in ("inference", "forward", "backward", "step") if any(name in own for own in shares.values())
    ]
    columns = min(3, len(places))
    figure, axes = theme.panels(-(-len(places) // columns), columns, 1.62, width=3.2, sharex=True, sharey=True)
    flat = [panel for row in axes for panel in row]
    several = cells["hardware"].nunique() > 1
    for panel, ((hardware, _, context, options), own) in zip(flat, places, strict=False):
        _draw_shares(panel, own, shares, phases)
        title = [theme.short(hardware, 34)] if several else []
        title += [f"{size_name(own.iloc[0], parameters=True)}, context {context:,.0f}"]
        title += [theme.short(options, 34)] if options else []
        panel.set_title("\n".join(title))
    for panel in flat[len(places) :]:
        panel.set_visible(False)
    for at in range(len(places)):  # the lowest panel of a column names the phases
        if at + columns >= len(places):
            flat[at].tick_params(axis="x", labelbottom=True)
    for row in axes:
        row[0].set_ylabel("matmul (%)")
    whole = words(cells, "GPU time", "operators' time")
    figure.supxlabel(f"phase, and the share of matmul in its {whole}{left_out(more_places)}", fontsize=8)
    return figure


def _draw_shares(panel, own: pd.DataFrame, shares: dict, phases: list[str]) -> None:
    panel.set_xlim(-0.25, len(phases) - 1 + (1.05 if len(phases) > 1 else 0.4))
    panel.set_ylim(0, 104)
    panel.set_yticks([0, 25, 50, 75, 100])
    panel.set_xticks(range(len(phases)), phases)
    ends, lost = [], []
    for precision in ordered(own["precision"], key=precision_rank):
        cells = own[own["precision"] == precision].to_dict("records")
        found: dict[str, tuple[float, float]] = {}
        for cell in cells:
            lost += [f"{precision}{more(cell)}: {trouble(cell)}"] if trouble(cell) else []
            found = {**shares[cell["cell"]], **found} if cell["mode"] != "step" else {**found, **shares[cell["cell"]]}
        places = [at for at, phase in enumerate(phases) if phase in found]
        if not places:
            continue
        matmul = [found[phases[at]][0] for at in places]
        total = [sum(found[phases[at]]) for at in places]
        look = {"color": colours.precision(precision), "marker": "o", "markersize": 3}
        panel.plot(places, matmul, linestyle=colours.DASHES.get(precision, "solid"), **look)
        name, text = theme.short(precision, 10), colours.precision_text(precision)
        ends.append((f"{name} {matmul[-1]:.0f} %", places[-1], matmul[-1], text))
        if max(both - alone for both, alone in zip(total, matmul, strict=True)) > 0.5:
            panel.plot(places, total, linestyle=(0, (1, 1.5)), **look | {"markerfacecolor": colours.PAPER})
            ends.append((f"+ attention {total[-1]:.0f} %", places[-1], total[-1], text))
    theme.label_lines(panel, ends, gap=0.105)
    if lost:
        panel.text(0.02, 0.03, "\n".join(lost), transform=panel.transAxes, fontsize=6.5, color=colours.MUTED)
