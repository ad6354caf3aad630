"""Figures of raw samples: a cell's steps in order with the warm-up, and the distributions of the noisiest cells."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stepscope.figures import colours, theme
from stepscope.report.kit.order import PHASES, label, main_grid, with_order

COLUMNS = ["cell", "mode", "kind", "step", "phase", "warmup", "seconds"]
HEAVIEST_FIRST = ("step", "forward-backward", "forward", "inference")
SERIES = ("forward", "backward", "optimizer", "step")
MOST_CELLS = 6
MOST_NOISY = 10
MOST_POINTS = 300
MOST_MARKED = 60


def short_cell(row: pd.Series, with_hardware: bool) -> str:
    """A cell's name on an axis: `xl, 1,024, bf16, run 2`."""
    parts = [theme.short(row["hardware"], 22)] if with_hardware else []
    parts += [theme.short(row["size"], 12), f"{row['context']:,.0f}", theme.short(row["precision"], 8)]
    parts += [theme.short(row["options"], 20)] if row.get("options") else []
    return ", ".join(parts + ([f"run {row['repeat']:.0f}"] if row.get("repeat", 1) > 1 else []))


def selection(grid: pd.DataFrame) -> pd.DataFrame:
    """The smallest, the middle and the largest size that finished, at a middle context, in two precisions.

    Of several machines as many each, evenly spread over what would be chosen of it.
    """
    done = grid[grid["status"] == "ok"] if not grid.empty else grid
    chosen = []
    for _, part in done.groupby(["hardware", "precision"], sort=False) if not done.empty else ():
        contexts = sorted(part["context"].unique())
        part = part[part["context"] == contexts[(len(contexts) - 1) // 2]]
        chosen.append(part.iloc[sorted({0, (len(part) - 1) // 2, len(part) - 1})])
    per_group = 3 if len(chosen) <= 2 else 2
    chosen = [part.iloc[[0, -1]] if len(part) > 2 and per_group == 2 else part for part in chosen]
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


def draw_samples(tables) -> Figure:
    """Time of each step in order, warm-up included."""
    grid = main_grid(tables["timing"])
    chosen = selection(grid)
    samples = tables.samples("timing", list(chosen["cell"]) if len(chosen) else [], COLUMNS)
    chosen = chosen[chosen["cell"].isin(samples["cell"])] if len(chosen) else chosen
    if samples.empty:
        return theme.empty("No raw samples: nothing to draw.")
    columns = 2 if len(chosen) == 4 else min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    figure, axes = theme.panels(rows, columns, 1.9)
    flat = [panel for row in axes for panel in row]
    several = grid["hardware"].nunique() > 1
    for panel, (_, cell) in zip(flat, chosen.iterrows(), strict=False):
        own = samples[samples["cell"] == cell["cell"]]
        _draw_steps(panel, own[own["mode"] == "step"] if (own["mode"] == "step").any() else own)
        panel.set_title(short_cell(cell, several), fontsize=7.5)
    for panel in flat[len(chosen) :]:
        panel.set_visible(False)
    for row in axes:
        row[0].set_ylabel("time (ms, log scale)")
    figure.supxlabel("step, warm-up first", fontsize=8)
    drawn = set(samples["phase"].map(_series))
    handles = [Line2D([], [], color=colours.PHASE[name], marker=".", label=name) for name in SERIES if name in drawn]
    figure.legend(handles=handles, loc="outside upper right", ncols=4)
    return figure


def _series(phase: str) -> str:
    return phase if phase in colours.PHASE else "step"


def _draw_steps(panel, samples: pd.DataFrame) -> None:
    """One cell's steps; the warm-up is shaded. Free steps after phased ones are warm: they begin beside the shade."""
    panel.set_yscale("log")
    lines = [(phase, line.sort_values("step")) for (_, phase), line in samples.groupby(["kind", "phase"])]
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
        theme.log_axis(panel.yaxis, times.min(), times.max())
    if warm:
        panel.axvspan(-0.5, warm - 0.5, color=colours.SHADE, zorder=0, linewidth=0)
        panel.text(
            -0.2, 0.98, "warm-up", transform=panel.get_xaxis_transform(), fontsize=6.5, va="top", color=colours.MUTED
        )
    panel.set_xlim(-0.5, last + 0.5)
    panel.xaxis.get_major_locator().set_params(integer=True)


def noisiest(timing: pd.DataFrame, most: int = MOST_NOISY) -> pd.DataFrame:
    """The (cell, phase) pairs with the widest confidence intervals relative to their medians, widest first."""
    if timing.empty:
        return pd.DataFrame(columns=["cell", "phase", "width"])
    timing = with_order(timing)
    parts = []
    for phase in (phase for phase in PHASES if f"{phase}_median_ms" in timing):
        width = (timing[f"{phase}_ci_high_ms"] - timing[f"{phase}_ci_low_ms"]) / timing[f"{phase}_median_ms"]
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


def draw_distribution(tables) -> Figure:
    """Measured samples of the noisiest cells around their medians."""
    chosen = noisiest(tables["timing"])
    samples = tables.samples("timing", list(chosen["cell"].unique()), COLUMNS)
    samples = samples[~samples["warmup"].astype(bool)] if len(samples) else samples
    if samples.empty:
        return theme.empty("No raw samples: nothing to draw.")
    figure, axes = theme.panels(1, 1, 0.45 + 0.23 * len(chosen), width=theme.WIDTH)
    panel = axes[0][0]
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
    return figure
