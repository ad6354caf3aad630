"""The ladder: a step after each change, and what checkpointing gives and takes."""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepscope.axes import MODES
from stepscope.figures import colours, marks, places, theme, words
from stepscope.results.tables import Tables

BROKEN = 1.6  # a bar that is as many times as long as all others is cut
MOST_PLACES = 3
OF_STEP = MODES["step"].phases
ABOUT = ["order", "after", "is_aside", "label", "changed"]  # of each variant
STATUS = {"oom": "out of memory"}


def rungs(tables: Tables) -> pd.DataFrame:
    """Whole steps of a ladder's variants, in the order in which they stand there: a row a place and
    variant, with what `variants` says of it.

    `ratio` and `verdict` are those of its comparison with `after`; `follows` is True of those that
    are compared with the rung above.
    """
    steps = places.free_steps(tables, study="ladder")
    about = tables["variants"][["cell", "variant", *ABOUT]]
    pairs = tables.rows("comparisons", study="ladder", mode="step", phase="step", quantity="time")
    judged = pairs[["cell", "a", "b", "ratio", "verdict"]]
    judged = judged.rename(columns={"a": "after", "b": "variant"})
    rows = steps.merge(about, on=["cell", "variant"])
    rows = rows.merge(judged, on=["cell", "after", "variant"], how="left")
    labels = about.set_index(["cell", "variant"])["label"]
    after = pd.MultiIndex.from_frame(rows[["cell", "after"]])
    rows["after_label"] = labels.reindex(after).to_numpy()
    is_rung = ~rows["is_aside"]
    above = rows[is_rung].groupby("cell", sort=False)["variant"].shift()
    follows = above.reindex(rows.index) == rows["after"]
    return rows.assign(follows=follows, verdict=rows["verdict"].fillna(""))


def climbed(tables: Tables) -> pd.DataFrame:
    """The rungs of the largest places, the largest first, but for checkpoints; not of a place whose
    ladder starts later than the longest one."""
    every = rungs(tables)
    steps = every[every["changed"] != "checkpoint"]
    measured = steps.dropna(subset=["median"])
    if measured.empty:
        return measured
    longest = steps[steps["cell"] == measured["cell"].mode()[0]]
    begins_alike = steps["variant"] == longest["variant"].iloc[0]
    whole = steps[steps["cell"].isin(steps.loc[begins_alike, "cell"])]
    candidates = whole.dropna(subset=["median"]).drop_duplicates("cell")
    cells = places.in_order(tables, candidates)[::-1][:MOST_PLACES]["cell"]
    shown = whole[whole["cell"].isin(cells)]
    rank = {cell: place for place, cell in enumerate(cells)}
    return shown.sort_values("cell", key=lambda cell: cell.map(rank), kind="stable")


def ladder(tables: Tables) -> Figure | None:
    """A panel a place, the largest on top; a bar a rung: phases, the step's interval, its ratio to
    the rung before.

    Where launches limit a rung, lines show each step without the host.
    """
    shown = climbed(tables)
    if shown.empty:
        return None
    cells = shown.drop_duplicates("cell")
    alone = places.free_steps(tables, "host_free_time", "ladder")
    starved = shown[(shown["limits"] == "launches") & shown["cell"].isin(alone["cell"])]
    counts = [int((shown["cell"] == cell).sum()) for cell in cells["cell"]]
    figure, axes = theme.panels(
        len(cells),
        1,
        0.45 + sum(0.55 + 0.19 * count for count in counts),
        _subject(shown, has_lines=not starved.empty),
        {phase: colours.of("phase", phase) for phase in OF_STEP},
        gridspec_kw={"height_ratios": counts},
    )
    phases = places.phase_times(tables, study="ladder")
    for panel, cell in zip(axes[:, 0], cells.to_dict("records"), strict=True):
        own = shown[shown["cell"] == cell["cell"]]
        _bars(panel, own, phases[phases["cell"] == cell["cell"]])
        if cell["cell"] in set(starved["cell"]):
            of_cell = alone[alone["cell"] == cell["cell"]].set_index("variant")["median"]
            _without_host(panel, of_cell.reindex(own["variant"]))
        panel.set_title(words.place(cell))
    scales = "" if len(cells) == 1 else "; each panel has its own scale"
    axes[-1, 0].set_xlabel(f"ms a step{scales}")
    return figure


def _subject(shown: pd.DataFrame, *, has_lines: bool) -> str:
    told = "× as fast as the row above"
    is_told_apart = (shown["verdict"] != "") & ~shown["follows"]
    if is_told_apart.any():
        told += " or the one in brackets"
    return f"{told}; vertical line: without the host" if has_lines else told


def _bars(panel: Axes, steps: pd.DataFrame, phases: pd.DataFrame) -> None:
    limit, is_cut = _limit(steps)
    for at, row in enumerate(steps.to_dict("records")):
        if math.isnan(row["median"]):
            told = STATUS.get(row["status"], row["status"])
            marks.beside_bar(panel, 0, at, told, color=colours.MUTED)
            continue
        step, low, high = (1e3 * row[name] for name in ("median", "low", "high"))
        own = phases[phases["variant"] == row["variant"]].set_index("phase")["median"]
        parts = _parts(own, step)
        time = f"{words.measured(step, low, high)} ms{_told(row)}"
        if is_cut and step > limit:  # the axis ends before the bar does
            marks.stack(panel, at, _up_to(limit, parts))
            look: marks.Look = {"fontsize": 11, "va": "center", "ha": "center", "clip_on": True}
            panel.text(0.93 * limit, at, "//", color=colours.PAPER, **look)
            marks.beside_bar(panel, limit, at, f"cut short: {time}")
            continue
        marks.stack(panel, at, parts)
        marks.intervals(panel, [at], [low], [high], colours.INK, horizontal=True)
        end = step if math.isnan(high) else max(step, high)
        marks.beside_bar(panel, end, at, time)
    marks.bar_axis(panel, [words.short(label, 24) for label in steps["label"]])
    panel.set_xlim(0, 1.42 * limit)


def _limit(steps: pd.DataFrame) -> tuple[float, bool]:
    """(ms up to which bars are drawn, whether the longest is cut there)."""
    known = steps.dropna(subset=["median"]).sort_values("median")
    medians = known["median"].to_list()
    is_cut = len(medians) > 1 and medians[-1] > BROKEN * medians[-2]
    kept = known.iloc[:-1] if is_cut else known
    longest = kept[["median", "high"]].max(axis=1).max()
    return 1.05e3 * longest, is_cut


def _parts(phases: pd.Series, step: float) -> list[tuple[float, str]]:
    """(ms, colour) of the phases as shares of the step, in which they overlap."""
    whole = phases.sum()
    if not whole:
        return [(step, colours.OKABE_ITO["grey"].light)]
    shares = phases / whole
    return [(shares.get(phase, 0.0) * step, colours.of("phase", phase)) for phase in OF_STEP]


def _up_to(limit: float, parts: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """The parts of a bar, each at its scale, as far as the limit."""
    left, kept = limit, []
    for width, colour in parts:
        kept.append((min(width, left), colour))
        left = max(0.0, left - width)
    return kept


def _without_host(panel: Axes, seconds: pd.Series) -> None:
    """A line across each bar at the step without the host."""
    for at, each in enumerate(seconds):
        if not math.isnan(each):
            panel.plot([1e3 * each] * 2, [at - 0.46, at + 0.46], color=colours.INK, linewidth=1.6)


def _told(row: dict) -> str:
    """`, × 1.55`; what is not faster is told by its verdict, and what does not follow the row above
    by what it is compared with."""
    if not row["verdict"]:
        return ""
    verdict = "" if row["verdict"] == "faster" else f" {row['verdict']}"
    against = "" if row["follows"] else f" ({words.short(row['after_label'], 24)})"
    return f",  × {words.measured(row['ratio'])}{verdict}{against}"


def checkpointed(tables: Tables) -> pd.DataFrame:
    """The rungs with checkpoints at the largest place that has any, and those without that they are
    compared with."""
    steps = rungs(tables).dropna(subset=["median"])
    place = places.largest(tables, steps[steps["changed"] == "checkpoint"])
    own = steps[steps["cell"].isin(place["cell"])]
    return own[own["variant"].isin({*place["variant"], *place["after"]})]


def checkpoint(tables: Tables) -> Figure | None:
    """Time and peak of a rung and of the same rung with a checkpoint every k blocks, at the largest
    place."""
    own = checkpointed(tables)
    if own.empty:
        return None
    # A rung that takes turns uses what others reserved: only what it allocates is its own.
    every, word = places.peaks(tables, "ladder", places.OWN_PEAKS)
    peaks = every[every["cell"] == own["cell"].iloc[0]].set_index("variant")["median"]
    if peaks.empty:
        return None
    unit, scale = words.byte_unit(peaks.max())
    subject = words.place(own.iloc[0].to_dict())
    figure, axes = theme.panels(1, 2, 0.8 + 0.24 * len(own), subject, sharey=True)
    time, memory = axes[0]
    colour = colours.OKABE_ITO[colours.ACCENT].light
    for at, row in enumerate(own.to_dict("records")):
        step, low, high = (1e3 * row[name] for name in ("median", "low", "high"))
        time.barh(at, step, height=marks.BAR, color=colour, linewidth=0)
        marks.intervals(time, [at], [low], [high], colours.INK, horizontal=True)
        end = step if math.isnan(high) else max(step, high)
        marks.beside_bar(time, end, at, words.number(step))
        peak = peaks.get(row["variant"], 0.0) / scale
        memory.barh(at, peak, height=marks.BAR, color=colour, linewidth=0)
        marks.beside_bar(memory, peak, at, words.number(peak))
    labels = [words.short(label, 24) for label in own["label"]]
    for panel, label in ((time, "ms a step"), (memory, f"{unit} {word} at the peak")):
        marks.bar_axis(panel, labels)
        panel.set(xlabel=label, xlim=(0, 1.2 * panel.dataLim.x1 or 1))
    return figure
