"""Figures of the precision study: growing sums, what autocast does, mixed precision over the timing grid."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.facets import MOST_PANELS, Facets, above, pick, sizes_in_order
from stepscope.figures.labels import power, short
from stepscope.figures.marks import (
    label_lines,
    label_rows,
    log_axis,
    mark_out_of_memory,
    precision_lines,
    raised,
    room_for_out_of_memory,
    size_ticks,
)
from stepscope.report.data.mixed import PHASES, Mixed, speeds_frame
from stepscope.report.data.precision import AUTOCAST, OF_SQUARES, PLAIN, Precision, outcome
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import machine_labels, ordered

# Growing sums ---------------------------------------------------------------------------------------------------------

MOST_HARDWARE = 3
_HAND = " cast to fp32"


def draw_accumulation(tables) -> Figure:
    """Error of the sum over the number of additions, a line a variant, a panel a machine."""
    precision = Precision(tables)
    samples = _samples(tables)
    machines = [each for each in precision.hardware if (samples["hardware"] == each).any()][:MOST_HARDWARE]
    if not machines:
        return theme.empty("No sum was probed: nothing to draw.")
    facets = Facets([0], machines, 2.7, width=6.6 if len(machines) == 1 else 4.4, sharey=True)
    for hardware, panel in zip(machines, facets.axes[0], strict=True):
        kinds = {row["variant"]: row for row in precision.rows("accumulation", hardware)}
        _draw_errors(panel, samples[samples["hardware"] == hardware], kinds)
        if len(machines) > 1:
            panel.set_title(short(hardware, 40), fontweight="normal", color=colours.MUTED)
    facets.axes[0][0].set_ylabel("|sum − 0.01 × additions| (log scale)")
    facets.name_axes(x="additions (log scale)")
    return facets.figure


def _samples(tables) -> pd.DataFrame:
    """hardware, variant, step, sum: every sum of every machine."""
    columns = ["hardware", "variant", "step", "sum"]
    path = tables.folder / "precision_samples.csv"
    if not path.exists():
        return pd.DataFrame(columns=columns)
    return pd.read_csv(path, usecols=columns, dtype={"hardware": "str", "variant": "str"})


def _draw_errors(panel, samples: pd.DataFrame, kinds: dict[str, dict]) -> None:
    """A line for each variant, those that give the same sums once; dashed where the sum has another type."""
    panel.set_xscale("log")
    panel.set_yscale("log")
    ends, drawn = [], {}
    for variant, own in samples.groupby("variant", sort=False):
        errors = (own["sum"] - own["step"] / 100).abs()
        drawn.setdefault(tuple(own["sum"]), []).append((variant, own["step"], errors))
    for same in drawn.values():
        variant, steps, errors = same[0]
        kind = kinds.get(variant, {})
        addend = str(kind.get("addend_dtype") or variant.split(" += ")[-1].split()[0])
        mixed = kind.get("sum_dtype") != kind.get("addend_dtype")
        shown, look = errors.where(errors > 0), {"color": colours.precision(addend)}
        look |= {"linewidth": 0.9, "linestyle": (0, (4, 1.6))} if mixed else {"linewidth": 1.3}
        panel.plot(steps, shown, **look)
        name = _variants_name([each for each, *_ in same])
        ends.append((name, steps.iloc[-1], shown.ffill().iloc[-1], colours.precision_text(addend)))
    panel.margins(y=0.05)
    log_axis(panel.yaxis, *panel.get_ylim(), formatter=power)
    log_axis(panel.xaxis, *panel.get_xlim())
    label_lines(panel, ends, gap=0.07)


def _variants_name(variants: Iterable[str]) -> str:
    """`fp32 += fp16`; variants that give the same sums are named once, with what tells them apart."""
    variants = list(variants)
    plain = [each for each in variants if not each.endswith(_HAND)]
    if len(variants) == 2 and len(plain) == 1 and variants[1] == plain[0] + _HAND:
        return f"{plain[0]}, cast or not"
    return short(" = ".join(variants), 40)


# Normalisations whose every operator runs in one format ---------------------------------------------------------------

# (operation, what is varied, the way that is drawn) and the panel's title and axis.
CASES = (
    ("RMSNorm", "largest |x|", PLAIN, "RMSNorm, all in the format", "largest |x|"),
    ("LayerNorm", "mean of x", OF_SQUARES, "LayerNorm, mean(x²) − mean(x)²", "mean of x"),
    ("softmax", "equal logits", "sum one by one", "softmax, sum one by one", "elements of a row"),
    ("softmax", "largest logit", "without the maximum", "softmax, max not subtracted", "largest logit"),
)
_FORMATS = ("fp32", "bf16", "fp16")
_LOWEST = 1e-8  # smaller errors are drawn here
_LOST = 3e4  # where a lost result is drawn, above every error
_LOST_LOOK = {
    "marker": "X",
    "markersize": 5,
    "markeredgewidth": 1,
    "markerfacecolor": colours.PAPER,
    "linestyle": "none",
}


def draw_forced(tables) -> Figure:
    """Error over what is varied, a line a format, a column of panels a case, a row a machine."""
    precision = Precision(tables)
    machines = [each for each in precision.hardware if precision.rows("forced", each, status="ok")][:MOST_HARDWARE]
    if not machines:
        return theme.empty("No forced normalisation was probed: nothing to draw.")
    facets = Facets(machines, CASES, 2.2, sharey=True)
    for hardware, panels in facets:
        for (operation, quantity, way, title, axis), panel in zip(CASES, panels, strict=True):
            rows = precision.rows("forced", hardware, operation=operation, quantity=quantity, status="ok")
            _draw_formats(panel, rows, way)
            panel.set_title(title, fontsize=7.5)
            if panels is facets.axes[-1]:
                panel.set_xlabel(axis)
        place = f"{short(hardware, 30)}\n" if len(machines) > 1 else ""
        panels[0].set_ylabel(f"{place}largest error (log scale)")
    ink = {"color": colours.MUTED}
    handles = [Line2D([], [], color=colours.precision(name), linewidth=2.5, label=name) for name in _FORMATS]
    handles += [Line2D([], [], marker="o", markersize=3, label="every operator in the format", **ink)]
    handles.append(Line2D([], [], linestyle=(0, (1, 1.5)), label="under autocast", **ink))
    handles.append(Line2D([], [], label="result all zero or NaN", markeredgecolor=colours.MUTED, **_LOST_LOOK))
    theme.legend(facets.figure, handles, len(handles), columnspacing=1.4)
    return facets.figure


def _draw_formats(panel, rows: list[dict], way: str) -> None:
    """A line for each format, a dotted one under autocast, and a cross where the result was lost."""
    values = sorted({row["value"] for row in rows if row["way"] == way})
    panel.set_yscale("log")
    panel.set_ylim(_LOWEST / 2, _LOST * 6)
    log_axis(panel.yaxis, *panel.get_ylim(), formatter=power)
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
            x = [place + shift for place in lost]
            panel.plot(x, [_LOST] * len(lost), markeredgecolor=look["color"], **_LOST_LOOK)


def _points(rows: dict[float, dict], values: list[float]) -> tuple[list[float], list[float]]:
    """Places and errors; a result that was lost breaks the line."""
    places = [place for place, value in enumerate(values) if value in rows]
    found = [rows[values[place]] for place in places]
    return places, [float("nan") if _is_lost(row) else max(row["error"], _LOWEST) for row in found]


def _is_lost(row: dict) -> bool:
    return not known(row["error"]) or outcome(row) == "all zero"


def _tick(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1024:.0f}k" if value % 1024 == 0 else f"{value / 1000:.0f}k"
    return f"{value:,.0f}" if value >= 1 or value == 0 else power(value)


# Mixed precision over the timing grid ---------------------------------------------------------------------------------

MOST_MACHINES = 4


def draw_speedup(tables) -> Figure:
    """Speed-up over parameters, a line a precision; columns of panels by context, rows by machine and phase."""
    grid = _main(speeds_frame(Mixed(tables)))
    if grid.empty or grid["ratio"].notna().sum() == 0:
        return theme.empty("No cell was timed both in fp32 and in 16 bits: nothing to draw.")
    machines = machine_labels(grid.loc[grid["ratio"].notna(), "hardware"])[:MOST_MACHINES]
    rows = [
        {"hardware": hardware, "phase": phase}
        for hardware in machines
        for phase in _phases(grid, hardware, len(machines))
    ]
    contexts = pick(ordered(grid["context"]), MOST_PANELS)
    facets = Facets(rows, contexts, 1.45, sharex=True, sharey=True)
    without = grid["ratio"].notna() & grid["low"].isna()
    grid = grid.assign(doubtful=without & grid["low"].notna().any())
    limits, drawn = _limits(grid), []
    for panel, own, _ in facets.parts(grid, "context"):
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(*limits)
        log_axis(panel.yaxis, *limits)
        panel.axhline(1, color=colours.INK, linewidth=0.8)
        ends, lost = precision_lines(panel, own, "parameters", "ratio", ("low", "high"))
        mark_out_of_memory(panel, lost)
        drawn.append((panel, ends))
    label_rows(drawn, gap=0.12)
    for row, panels in facets:
        panels[0].set_ylabel(PHASES[row["phase"]])
    for context, panel in zip(contexts, facets.axes[0], strict=True):
        panel.set_title(f"context {context:,.0f}")
    if len(machines) > 1:
        for hardware, row in facets.first_rows("hardware").items():
            above(facets.axes[row][0], short(hardware, 60), 5 if row else 18, color=colours.MUTED)
    names = {parameters: short(size, 12) for size, parameters in sizes_in_order(grid).items()}
    for panel in facets.axes[-1]:
        size_ticks(panel, names)
    facets.name_axes(x="model size (by parameters, log scale)")
    facets.name_axes(y="times as fast as in fp32 (log scale)")
    return facets.figure


def _main(grid: pd.DataFrame) -> pd.DataFrame:
    """The pairs of the most frequent batch, mode and options: a figure holds one of each."""
    grid = grid.dropna(subset=["parameters", "context"])
    for name in ("options", "mode", "batch"):
        values = grid[name].dropna()
        if values.nunique() > 1:
            grid = grid[grid[name] == ("" if name == "options" and (values == "").any() else values.mode()[0])]
    return grid


def _phases(grid: pd.DataFrame, hardware: str, machines: int) -> list[str]:
    """All phases of one machine; of several the step, or what was timed instead."""
    own = grid[(grid["hardware"] == hardware) & grid["ratio"].notna()]
    timed = [phase for phase in PHASES if (own["phase"] == phase).any()]
    if machines == 1:
        return timed
    return ["step"] if "step" in timed else timed[-1:]


def _limits(grid: pd.DataFrame) -> tuple[float, float]:
    """Of the y axis, with room above for what ran out of memory."""
    ends = grid[["ratio", "low", "high"]].astype(float)  # without an interval, the ratio alone
    low, high = min(np.nanmin(ends), 0.9) / 1.1, max(np.nanmax(ends), 1.1) * 1.1
    crosses = int(grid["precision"].nunique()) if (grid["lost"] == True).any() else 0  # noqa: E712
    return raised(low, high, room_for_out_of_memory(crosses))


FIGURES = {
    "precision_accumulation": draw_accumulation,
    "precision_forced": draw_forced,
    "precision_speedup": draw_speedup,
}
