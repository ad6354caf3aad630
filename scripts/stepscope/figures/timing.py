"""Figures of the timing study: growth with size and context, the split into phases, raw samples."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from stepscope import colours
from stepscope.figures import theme
from stepscope.figures.facets import MOST_PANELS, MOST_SIZES, Facets, apart, part, pick, sizes_in_order, wrapped
from stepscope.figures.labels import short, size_name
from stepscope.figures.marks import (
    label_rows,
    log_axis,
    mark_out_of_memory,
    named_ticks,
    precision_lines,
    raised,
    room_for_lost,
    size_ticks,
    stack,
)
from stepscope.report.data.own_models import of_own
from stepscope.report.kit.order import PHASES, column, label, machine_labels, main_grid, ordered, with_order

MOST_HARDWARE = 4
MOST_BARS = 190
# The phases drawn for one hardware label, for two, and for more: rows of panels are limited.
SHOWN = {1: ("forward", "backward", "step"), 2: ("forward", "step")}
COLUMNS = ["cell", "mode", "kind", "step", "phase", "warmup", "seconds"]
HEAVIEST_FIRST = ("step", "forward-backward", "forward", "inference")
SERIES = ("forward", "backward", "optimizer", "step")
MOST_CELLS = 6
MOST_NOISY = 10
MOST_POINTS = 300
MOST_MARKED = 60

# Growth ---------------------------------------------------------------------------------------------------------------


def draw_by_size(tables) -> Figure:
    """Time over the parameter count, a line a precision, by context."""
    return _growth(tables, "parameters", "context", "model size and parameters (log scale)")


def draw_by_context(tables) -> Figure:
    """Time over the context, a line a precision, by size."""
    return _growth(tables, "context", "size", "context (tokens, log scale)")


def _growth(tables, x: str, by: str, x_label: str) -> Figure:
    """Time over `x`, a line a precision, a column of panels for each value of `by`."""
    grid = main_grid(tables["timing"])
    if not grid.empty:
        grid = grid.dropna(subset=["parameters", "context"])
        sizes = pick(list(dict.fromkeys(grid.sort_values("parameters")["size"])), MOST_SIZES)
        grid = grid[grid["size"].isin(sizes)]
    times = _by_phase(grid)
    rows = _rows(times)
    if not rows:
        return theme.empty("No timing cell has been measured: nothing to draw.")
    order = ["parameters", "context"] if by == "size" else by
    columns = pick(list(dict.fromkeys(grid.sort_values(order)[by])), MOST_PANELS)
    facets = Facets(rows, columns, 1.72, sharex=True, sharey="row")
    if x == "parameters":  # a line over the parameters joins sizes of one model
        times = times.assign(apart=times["own"])
    drawn = []
    for panel, own, line in facets.parts(times, by):
        limits = _limits(line)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(*limits)
        log_axis(panel.yaxis, *limits)
        ends, lost = precision_lines(panel, own, x, "median", ("low", "high"))
        mark_out_of_memory(panel, lost)
        drawn.append((panel, ends))
    label_rows(drawn)
    for row, panels in facets:
        panels[0].set_ylabel(f"{label(row['phase'])} (ms)")
    names = {size: size_name(size, parameters) for size, parameters in sizes_in_order(grid).items()}
    facets.name_columns([names[each] if by == "size" else f"context {each:,.0f}" for each in columns])
    if grid["hardware"].nunique() > 1:
        for hardware, row in facets.first_rows("hardware").items():
            facets.name_group(row, hardware)
    for panel in facets.axes[-1]:
        _x_ticks(panel, grid, x, names)
    facets.name_axes(x=x_label)
    return facets.figure


def _by_phase(grid: pd.DataFrame) -> pd.DataFrame:
    """A row a cell and phase of those that were measured: `median`, `low` and `high` in ms, `lost`, `doubtful`."""
    measured = [phase for phase in PHASES if f"{phase}_median_ms" in grid and grid[f"{phase}_median_ms"].notna().any()]
    names = {"median": "median_ms", "low": "ci_low_ms", "high": "ci_high_ms"}
    parts = [
        grid[["hardware", "size", "parameters", "context", "precision"]].assign(
            phase=phase,
            own=of_own(grid),
            lost=grid[f"{phase}_status"] == "oom",
            doubtful=column(grid, f"{phase}_unsteady").eq(True),
            **{name: grid[f"{phase}_{column}"] for name, column in names.items()},
        )
        for phase in measured
    ]
    return pd.concat(parts) if parts else pd.DataFrame(columns=["hardware"])


def _rows(times: pd.DataFrame) -> list[dict]:
    """`hardware` and `phase` of each row of panels: a training step's phases, else the fullest that was measured."""
    shown = SHOWN.get(times["hardware"].nunique(), ("step",))
    rows = []
    for hardware in machine_labels(times["hardware"])[:MOST_HARDWARE]:
        own = part(times, hardware=hardware).dropna(subset=["median"])
        measured = list(dict.fromkeys(own["phase"]))
        phases = [phase for phase in shown if phase in measured] or measured[-1:]
        rows += [{"hardware": hardware, "phase": phase} for phase in phases]
    return rows


def _limits(line: pd.DataFrame) -> tuple[float, float]:
    """Limits of the y axis (ms): all intervals, with room for the out-of-memory marks where there are any."""
    times = line["median"].dropna()
    times = times[times > 0]
    if times.empty:
        return 0.1, 10.0
    ends = line.loc[times.index, ["low", "high"]].astype(float)
    low, high = min(times.min() / 1.5, ends["low"].min() / 1.1), max(times.max() * 1.5, ends["high"].max() * 1.1)
    return raised(low, high, room_for_lost(line[line["lost"]], ["size", "context"]))


def _x_ticks(panel, grid: pd.DataFrame, x: str, names: dict[str, str]) -> None:
    """Ticks at the sizes or contexts that were measured; names: of the sizes."""
    if x == "context":
        named_ticks(panel.xaxis, {value: f"{value:,.0f}" for value in pick(ordered(grid["context"]), 7)})
        return
    sizes = sizes_in_order(grid)
    shown = zip(sizes.items(), apart(list(sizes.values())), strict=True)
    size_ticks(panel, {parameters: names[size] for (size, parameters), has_room in shown if has_room})


# Phases ---------------------------------------------------------------------------------------------------------------


def draw_phases(tables) -> Figure:
    """Shares of forward, backward and optimizer; the numbers are milliseconds."""
    grid = main_grid(tables["timing"])
    names = tuple(colours.PHASE)[:3]
    medians = [f"{name}_median_ms" for name in names]
    if grid.empty or not set(medians) <= set(grid.columns) or grid[medians].notna().all(axis=1).sum() == 0:
        return theme.empty("No cell has timed forward, backward and optimizer: nothing to draw.")
    contexts = pick(ordered(grid["context"]), 4)
    rows = grid[["hardware", "precision"]].drop_duplicates().to_dict("records")[:6]
    most = min(MOST_SIZES, MOST_BARS // (len(rows) * len(contexts)))
    sizes = pick(list(dict.fromkeys(grid.sort_values("parameters")["size"])), most)
    facets = Facets(rows, contexts, 0.35 + 0.19 * len(sizes), sharex=True, sharey=True)
    several = grid["hardware"].nunique() > 1
    for panel, own, _ in facets.parts(grid, "context"):
        _draw_shares(panel, own.set_index("size"), sizes, names)
    for row, panels in facets:
        place = f"{short(row['hardware'], 40)}, " if several else ""
        panels[0].set_title(f"{place}{short(row['precision'], 10)}")
    for context, panel in zip(contexts, facets.axes[0], strict=True):
        place = {"xycoords": panel.get_xaxis_transform(), "textcoords": "offset points", "annotation_clip": False}
        height = 18 if several else 6
        panel.annotate(f"context {context:,.0f}", (50, 1), (0, height), ha="center", fontsize=7.5, **place)
    facets.axes[0][0].set_yticks(range(len(sizes)), [short(size, 14) for size in sizes])
    facets.axes[0][0].invert_yaxis()
    facets.name_axes(x="share of forward + backward + optimizer (%); in the bars and beside them: ms")
    handles = [Patch(color=colours.PHASE[name], label=name) for name in names]
    theme.legend(facets.figure, handles, 3, loc="outside upper right")
    return facets.figure


def _draw_shares(panel, cells: pd.DataFrame, sizes: list[str], names: tuple[str, ...]) -> None:
    """Horizontal bars of one panel, a size a bar."""
    panel.grid(False)
    panel.spines["left"].set_visible(False)
    panel.tick_params(axis="y", length=0)
    panel.set_xlim(0, 124)
    panel.set_xticks([0, 50, 100])
    for place, size in enumerate(sizes):
        if size not in cells.index:
            continue
        cell = cells.loc[size]
        times = [cell[f"{name}_median_ms"] for name in names]
        if any(pd.isna(time) for time in times):
            status = "OOM" if cell["status"] == "oom" else cell["status"]
            panel.text(2, place, status, va="center", fontsize=6.5, color=colours.MUTED)
            continue
        widths = [100 * time / sum(times) for time in times]
        ends = stack(panel, place, zip(widths, (colours.PHASE[name] for name in names), strict=True))
        look = {"ha": "center", "va": "center", "fontsize": 6, "color": colours.ON_BAR}
        for left, width, time in zip(ends, widths, times, strict=False):
            if width > 15:
                panel.text(left + width / 2, place, _time(time), **look)
        panel.text(102, place, _time(sum(times)), va="center", fontsize=6.5)


def _time(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


# Samples --------------------------------------------------------------------------------------------------------------


def draw_samples(tables) -> Figure:
    """Time of each step in order, warm-up included."""
    grid = main_grid(tables["timing"])
    chosen = selection(grid)
    samples = tables.samples("timing", list(chosen["cell"]) if len(chosen) else [], COLUMNS)
    chosen = chosen[chosen["cell"].isin(samples["cell"])] if len(chosen) else chosen
    if samples.empty:
        return theme.empty("No raw samples: nothing to draw.")
    facets, panels, spare = wrapped(len(chosen), 2 if len(chosen) == 4 else 3, 1.9)
    several = grid["hardware"].nunique() > 1
    for panel, (_, cell) in zip(panels, chosen.iterrows(), strict=True):
        own = samples[samples["cell"] == cell["cell"]]
        _draw_steps(panel, own[own["mode"] == "step"] if (own["mode"] == "step").any() else own)
        panel.set_title(short_cell(cell, several), fontsize=7.5)
    for panel in spare:
        panel.set_visible(False)
    for row in facets.axes:
        row[0].set_ylabel("time (ms, log scale)")
    facets.name_axes(x="step, warm-up first")
    drawn = set(samples["phase"].map(_series))
    handles = [Line2D([], [], color=colours.PHASE[name], marker=".", label=name) for name in SERIES if name in drawn]
    theme.legend(facets.figure, handles, 4, loc="outside upper right")
    return facets.figure


def selection(grid: pd.DataFrame) -> pd.DataFrame:
    """The smallest, the middle and the largest size that finished, at a middle context, in two precisions.

    Of several machines as many each, evenly spread over what would be chosen of it.
    """
    done = grid[grid["status"] == "ok"] if not grid.empty else grid
    chosen = []
    for _, group in done.groupby(["hardware", "precision"], sort=False) if not done.empty else ():
        contexts = sorted(group["context"].unique())
        group = group[group["context"] == contexts[(len(contexts) - 1) // 2]]
        chosen.append(group.iloc[sorted({0, (len(group) - 1) // 2, len(group) - 1})])
    per_group = 3 if len(chosen) <= 2 else 2
    chosen = [group.iloc[[0, -1]] if len(group) > 2 and per_group == 2 else group for group in chosen]
    if not chosen:
        return done
    found = pd.concat(chosen).drop_duplicates("cell")
    most = max(1, MOST_CELLS // found["hardware"].nunique())
    return pd.concat(_spread(own, most) for _, own in found.groupby("hardware", sort=False)).head(MOST_CELLS)


def _spread(own: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most so many rows: the first ones of one machine alone, else from the first to the last."""
    if len(own) <= most or most == MOST_CELLS:
        return own.head(most)
    return own.iloc[[round(at * (len(own) - 1) / max(most - 1, 1)) for at in range(most)]]


def short_cell(row: pd.Series, with_hardware: bool) -> str:
    """A cell's name on an axis: `xl, 1,024, bf16, run 2`."""
    parts = [short(row["hardware"], 22)] if with_hardware else []
    parts += [short(row["size"], 12), f"{row['context']:,.0f}", short(row["precision"], 8)]
    parts += [short(row["options"], 20)] if row.get("options") else []
    return ", ".join(parts + ([f"run {row['repeat']:.0f}"] if row.get("repeat", 1) > 1 else []))


def _series(phase: str) -> str:
    return phase if phase in colours.PHASE else "step"


def _draw_steps(panel, samples: pd.DataFrame) -> None:
    """One cell's steps, a line a process; the warm-up is shaded.

    Free steps after phased ones are warm: they begin beside the shade.
    """
    panel.set_yscale("log")
    process = samples.groupby(["kind", "phase", "step"]).cumcount()  # one after another they begin at step 0
    series = samples.groupby(["kind", "phase", process])
    lines = [(phase, line.sort_values("step")) for (_, phase, _), line in series]
    warm = max(int(line["warmup"].sum()) for _, line in lines)
    last = 0
    for phase, line in lines:
        line = line.assign(step=line["step"] + warm - int(line["warmup"].sum())).head(MOST_POINTS)
        last = max(last, line["step"].max())
        colour = colours.PHASE[_series(phase)]
        marker = "." if len(line) <= MOST_MARKED else None
        panel.plot(line["step"], line["seconds"] * 1e3, color=colour, marker=marker, markersize=3, linewidth=0.8)
    times = samples.loc[samples["seconds"] > 0, "seconds"] * 1e3
    if len(times):
        panel.set_ylim(times.min() / 1.4, times.max() * 1.9)
        log_axis(panel.yaxis, times.min(), times.max())
    if warm:
        panel.axvspan(-0.5, warm - 0.5, color=colours.SHADE, zorder=0, linewidth=0)
        panel.text(
            -0.2, 0.98, "warm-up", transform=panel.get_xaxis_transform(), fontsize=6.5, va="top", color=colours.MUTED
        )
    panel.set_xlim(-0.5, last + 0.5)
    panel.xaxis.get_major_locator().set_params(integer=True)


def draw_distribution(tables) -> Figure:
    """Measured samples of the cells whose samples scatter most, around their medians."""
    chosen = noisiest(tables["timing"])
    samples = tables.samples("timing", list(chosen["cell"].unique()), COLUMNS)
    samples = samples[~samples["warmup"].astype(bool)] if len(samples) else samples
    if samples.empty:
        return theme.empty("No raw samples: nothing to draw.")
    facets = Facets([0], [0], 0.45 + 0.23 * len(chosen), width=theme.WIDTH)
    panel = facets.axes[0][0]
    several = tables["timing"]["hardware"].nunique() > 1
    names, furthest = [], 1.0
    for place, (_, row) in enumerate(chosen.iterrows()):
        own = series_of(samples[samples["cell"] == row["cell"]], row["phase"])
        shift = 100 * (own["seconds"].to_numpy()[:MOST_POINTS] * 1e3 / row["median"] - 1)
        height = place + 0.22 * np.sin(2.399963 * np.arange(len(shift)))
        low, high = (100 * (row[name] / row["median"] - 1) for name in ("low", "high"))
        panel.plot(
            shift, height, ".", color=colours.precision(row["precision"]), markersize=3.5, alpha=0.6, markeredgewidth=0
        )
        panel.plot([low, high], [place, place], color=colours.INK, linewidth=2, solid_capstyle="butt")
        panel.plot([0], [place], "|", color=colours.INK, markersize=9)
        names.append(f"{short_cell(row, several)}: {label(row['phase'])}")
        furthest = max(furthest, *(np.abs(shift) if len(shift) else [0]))
    if furthest > 100:
        panel.set_xscale("symlog", linthresh=10, linscale=2)
    panel.set_yticks(range(len(names)), names)
    panel.invert_yaxis()
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:+g}".replace("-", "\N{MINUS SIGN}") if value else "0")
    panel.set_xlabel("difference from the median (%)")
    return facets.figure


def noisiest(timing: pd.DataFrame, most: int = MOST_NOISY) -> pd.DataFrame:
    """The (cell, phase) pairs with the largest interquartile ranges relative to their medians, largest first.

    Not by their confidence intervals, which are as wide for all cells of a class.
    """
    if timing.empty:
        return pd.DataFrame(columns=["cell", "phase", "width"])
    timing = with_order(timing)
    parts = []
    for phase in (phase for phase in PHASES if f"{phase}_iqr_ms" in timing):
        width = timing[f"{phase}_iqr_ms"] / timing[f"{phase}_median_ms"]
        kept = timing[["cell", "hardware", "size", "context", "precision", "options", "repeat"]]
        times = timing[[f"{phase}_median_ms", f"{phase}_ci_low_ms", f"{phase}_ci_high_ms"]]
        parts.append(kept.join(times.set_axis(["median", "low", "high"], axis=1)).assign(phase=phase, width=width))
    every = pd.concat(parts).dropna(subset=["width"]) if parts else pd.DataFrame(columns=["width"])
    return every.sort_values("width", ascending=False, kind="stable").head(most)


def series_of(samples: pd.DataFrame, phase: str) -> pd.DataFrame:
    """The samples of one cell that the table's numbers for a phase come from: of the heaviest mode that has them."""
    found = samples[samples["phase"] == label(phase)]
    for mode in HEAVIEST_FIRST:
        for kind in ("phased", "free"):
            own = found[(found["mode"] == mode) & (found["kind"] == kind)]
            if len(own):
                return own
    return found


FIGURES = {
    "timing_by_size": draw_by_size,
    "timing_by_context": draw_by_context,
    "timing_phases": draw_phases,
    "timing_samples": draw_samples,
    "timing_distribution": draw_distribution,
}
