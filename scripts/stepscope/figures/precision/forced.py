"""Figure: the error of normalisations whose every operator runs in one format."""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stepscope.figures import colours, theme
from stepscope.report.data.precision import AUTOCAST, OF_SQUARES, PLAIN, Precision, outcome
from stepscope.report.kit.formatting import known

MOST_HARDWARE = 3
# (operation, what is varied, the way that is drawn) and the panel's title and axis.
PANELS = (
    ("RMSNorm", "largest |x|", PLAIN, "RMSNorm, all in the format", "largest |x|"),
    ("LayerNorm", "mean of x", OF_SQUARES, "LayerNorm, mean(x²) − mean(x)²", "mean of x"),
    ("softmax", "equal logits", "sum one by one", "softmax, sum one by one", "elements of a row"),
    ("softmax", "largest logit", "without the maximum", "softmax, max not subtracted", "largest logit"),
)
_FORMATS = ("fp32", "bf16", "fp16")
_LOWEST = 1e-8  # smaller errors are drawn here
_LOST = 3e4  # where a lost result is drawn, above every error
_LOOK = {"marker": "X", "markersize": 5, "markeredgewidth": 1, "markerfacecolor": colours.PAPER, "linestyle": "none"}


def draw_forced(tables) -> Figure:
    """Error over what is varied, a line a format, a column of panels a case, a row a machine."""
    precision = Precision(tables)
    machines = [each for each in precision.hardware if precision.rows("forced", each, status="ok")][:MOST_HARDWARE]
    if not machines:
        return theme.empty("No forced normalisation was probed: nothing to draw.")
    figure, axes = theme.panels(len(machines), len(PANELS), 2.2, sharey=True)
    for hardware, row in zip(machines, axes, strict=True):
        for case, panel in zip(PANELS, row, strict=True):
            operation, quantity, way, title, axis = case
            rows = precision.rows("forced", hardware, operation=operation, quantity=quantity, status="ok")
            _draw(panel, rows, way)
            panel.set_title(title, fontsize=7.5)
            if row is axes[-1]:
                panel.set_xlabel(axis)
        place = f"{theme.short(hardware, 30)}\n" if len(machines) > 1 else ""
        row[0].set_ylabel(f"{place}largest error (log scale)")
    ink = {"color": colours.MUTED}
    handles = [Line2D([], [], color=colours.precision(name), linewidth=2.5, label=name) for name in _FORMATS]
    handles += [Line2D([], [], marker="o", markersize=3, label="every operator in the format", **ink)]
    handles.append(Line2D([], [], linestyle=(0, (1, 1.5)), label="under autocast", **ink))
    handles.append(Line2D([], [], label="result all zero or NaN", markeredgecolor=colours.MUTED, **_LOOK))
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), columnspacing=1.4)
    return figure


def _draw(panel, rows: list[dict], way: str) -> None:
    values = sorted({row["value"] for row in rows if row["way"] == way})
    panel.set_yscale("log")
    panel.set_ylim(_LOWEST / 2, _LOST * 6)
    theme.log_axis(panel.yaxis, *panel.get_ylim(), formatter=_power)
    panel.set_xticks(range(len(values)), [_tick(value) for value in values])
    panel.set_xlim(-0.4, len(values) - 0.6 if values else 1)
    panel.axhline(1, color=colours.MUTED, linewidth=0.6)
    for name in _FORMATS:
        own = {row["value"]: row for row in rows if row["way"] == way and row["format"] == name}
        auto = {row["value"]: row for row in rows if row["way"] == AUTOCAST and row["format"] == name}
        look = {"color": colours.precision(name)}
        panel.plot(*_points(auto, values), linestyle=(0, (1, 1.5)), linewidth=1, **look)
        panel.plot(*_points(own, values), marker="o", markersize=3, linewidth=1.1, **look)
        lost = [place for place, value in enumerate(values) if value in own and _is_lost(own[value])]
        if lost:
            shift = {"fp32": 0.12, "bf16": 0.0, "fp16": -0.12}[name]
            panel.plot([place + shift for place in lost], [_LOST] * len(lost), markeredgecolor=look["color"], **_LOOK)


def _points(rows: dict[float, dict], values: list[float]) -> tuple[list[float], list[float]]:
    """Places and errors; a result that was lost breaks the line."""
    places = [place for place, value in enumerate(values) if value in rows]
    errors = [float("nan") if _is_lost(rows[values[place]]) else max(rows[values[place]]["error"], _LOWEST)
              for place in places]  # fmt: skip
    return places, errors


def _is_lost(row: dict) -> bool:
    return not known(row["error"]) or outcome(row) == "all zero"


def _tick(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1024:.0f}k" if value % 1024 == 0 else f"{value / 1000:.0f}k"
    return f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:.0e}".replace("e-0", "e−")


def _power(value: float, _position=None) -> str:
    return "1" if value == 1 else f"{value:.0e}".replace("e-0", "e−").replace("e+0", "e").replace("e-", "e−")
