"""The ladder: a step after each change, and what checkpointing gives and takes."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme, words
from stepscope.figures.steps import OF_STEP
from stepscope.results.option_labels import LABELS
from stepscope.results.tables import Tables

BROKEN = 1.6  # a first bar that is as many times as long as all others is cut
MOST_PLACES = 3


def rungs(tables: Tables) -> pd.DataFrame:
    """Whole steps of a ladder's variants, in the order in which they stand there: a row a place and
    variant.

    `after` is the variant that each is compared with, `ratio` and `verdict` are those of that
    comparison; `is_aside` is True of those that are not compared with the rung before.
    """
    rows = places.free_steps(tables, study="ladder").copy()
    pairs = tables.rows("comparisons", study="ladder", mode="step", phase="step", quantity="time")
    found = {}
    for cell, own in rows.groupby("cell", sort=False):
        of_cell = pairs[pairs["cell"] == cell]
        first = before = own["variant"].iloc[0]
        for variant in own["variant"].iloc[1:]:
            to_judge = of_cell[of_cell["b"] == variant]
            others = [a for a in to_judge["a"] if a != first]
            after = before if before in set(to_judge["a"]) else next(iter(others), first)
            judged = to_judge[to_judge["a"] == after]
            ratio, verdict = (
                judged[["ratio", "verdict"]].iloc[0] if len(judged) else (float("nan"), "")
            )
            found[cell, variant] = after, ratio, verdict, after != before
            before = variant if after == before else before
    told = [
        found.get((row.cell, row.variant), ("", float("nan"), "", False))
        for row in rows.itertuples()
    ]
    columns = ["after", "ratio", "verdict", "is_aside"]
    return rows.assign(**{name: [each[at] for each in told] for at, name in enumerate(columns)})


def ladder(tables: Tables) -> Figure | None:
    """A panel a place, the largest on top; a bar a rung: phases, the step's interval, its ratio to
    the rung before.

    Where launches limit a rung, lines show each step without the host. A place whose ladder starts
    later than the longest one has no panel.
    """
    steps = rungs(tables)
    steps = steps[~steps["variant"].str.contains("checkpoint=", regex=False)]
    if steps["median"].isna().all():
        return None
    longest = steps.dropna(subset=["median"])["cell"].mode()[0]
    start = steps[steps["cell"] == longest]["variant"].iloc[0]
    steps = steps[steps["cell"].isin(steps.loc[steps["variant"] == start, "cell"])]
    cells = places.in_order(tables, steps.dropna(subset=["median"]).drop_duplicates("cell"))[::-1][
        :MOST_PLACES
    ]
    phases = places.phase_times(tables, study="ladder")
    counts = [int((steps["cell"] == cell).sum()) for cell in cells["cell"]]
    key = {phase: colours.of("phase", phase) for phase in OF_STEP}
    alone = places.free_steps(tables, "host_free_time", "ladder").set_index(["cell", "variant"])[
        "median"
    ]
    starved = set(steps.query("limits == 'launches'")["cell"]) & {cell for cell, _ in alone.index}
    subject = "× how many times as fast as the row above"
    shown = steps[steps["cell"].isin(cells["cell"])]
    subject += ", or as the one in brackets" if shown["is_aside"].any() else ""
    subject += "; vertical line: without the host" if starved & set(cells["cell"]) else ""
    height = 0.45 + sum(0.55 + 0.19 * count for count in counts)
    figure, axes = theme.panels(
        len(cells), 1, height, subject, key, gridspec_kw={"height_ratios": counts}
    )
    for panel, cell in zip(axes[:, 0], cells.to_dict("records"), strict=True):
        own = steps[steps["cell"] == cell["cell"]].to_dict("records")
        _bars(panel, own, phases[phases["cell"] == cell["cell"]])
        if cell["cell"] in starved:
            _without_host(panel, [alone.get((row["cell"], row["variant"])) for row in own])
        panel.set_title(words.place(cell))
    axes[-1, 0].set_xlabel("ms a step")
    return figure


def _bars(panel, steps: list[dict], phases: pd.DataFrame) -> None:
    known = sorted(row["median"] for row in steps if row["median"] == row["median"])
    is_broken = len(known) > 1 and known[-1] > BROKEN * known[-2]
    kept = [row for row in steps if row["median"] <= known[-2 if is_broken else -1]]
    limit = 1.05e3 * max(np.nanmax([row["median"], row["high"]]) for row in kept)
    for at, row in enumerate(steps):
        step = 1e3 * row["median"]
        if step != step:
            marks.beside_bar(
                panel,
                0,
                at,
                {"oom": "out of memory"}.get(row["status"], row["status"]),
                color=colours.MUTED,
            )
            continue
        own = phases[phases["variant"] == row["variant"]].set_index("phase")["median"]
        shown = min(1.0, limit / step)
        scale = shown * step / own.sum() if own.sum() else 0.0
        parts = [(own.get(phase, 0.0) * scale, colours.of("phase", phase)) for phase in OF_STEP]
        marks.stack(
            panel, at, parts if scale else [(shown * step, colours.OKABE_ITO["grey"].light)]
        )
        high = 1e3 * row["high"] if row["high"] == row["high"] else step
        if shown == 1.0:
            marks.intervals(panel, [at], [1e3 * row["low"]], [high], colours.INK, horizontal=True)
        else:
            panel.text(
                0.93 * limit,
                at,
                "//",
                color=colours.PAPER,
                fontsize=11,
                va="center",
                ha="center",
                clip_on=True,
            )
        time = words.measured(step, 1e3 * row["low"], high)
        cut = "" if shown == 1.0 else "cut short: "
        marks.beside_bar(panel, min(max(step, high), limit), at, f"{cut}{time} ms{_told(row)}")
    marks.bar_axis(panel, [_name(row["variant"]) for row in steps])
    panel.set_xlim(0, 1.42 * limit)


def _without_host(panel, seconds: list[float | None]) -> None:
    """A line across each bar at the step without the host."""
    for at, each in enumerate(seconds):
        if each is not None:
            panel.plot([1e3 * each] * 2, [at - 0.46, at + 0.46], color=colours.INK, linewidth=1.6)


def _told(row: dict) -> str:
    """`, × 1.55`; what is not faster is told by its verdict, and an aside by what it is compared
    with."""
    if not row["verdict"]:
        return ""
    verdict = "" if row["verdict"] == "faster" else f" {row['verdict']}"
    return f",  × {words.measured(row['ratio'])}{verdict}" + (
        f" ({_name(row['after'])})" if row["is_aside"] else ""
    )


def _name(variant: str) -> str:
    return words.short(LABELS.get(variant, variant), 24)


def checkpoint(tables: Tables) -> Figure | None:
    """Time and peak of a rung and of the same rung with a checkpoint every k blocks, at the largest
    place."""
    steps = rungs(tables).dropna(subset=["median"])
    kept = steps[steps["variant"].str.contains("checkpoint=", regex=False)]
    place = places.largest(tables, kept)
    if place.empty:
        return None
    own = steps[steps["cell"] == place["cell"].iloc[0]]
    own = own[own["variant"].isin({*place["variant"], *place["after"]})]
    peaks, word = places.peaks(tables, "ladder")
    peaks = peaks[peaks["cell"] == own["cell"].iloc[0]].set_index("variant")["median"]
    if peaks.empty:
        return None
    unit, scale = words.byte_unit(peaks.max())
    figure, axes = theme.panels(
        1, 2, 0.8 + 0.24 * len(own), words.place(own.iloc[0].to_dict()), sharey=True
    )
    time, memory = axes[0]
    colour = colours.OKABE_ITO[colours.ACCENT].light
    for at, row in enumerate(own.to_dict("records")):
        time.barh(at, 1e3 * row["median"], height=marks.BAR, color=colour, linewidth=0)
        marks.intervals(
            time, [at], [1e3 * row["low"]], [1e3 * row["high"]], colours.INK, horizontal=True
        )
        end = max(row["median"], row["high"]) if row["high"] == row["high"] else row["median"]
        marks.beside_bar(time, 1e3 * end, at, words.number(1e3 * row["median"]))
        peak = peaks.get(row["variant"], 0.0) / scale
        memory.barh(at, peak, height=marks.BAR, color=colour, linewidth=0)
        marks.beside_bar(memory, peak, at, words.number(peak))
    for panel, label in ((time, "ms a step"), (memory, f"{unit} {word} at the peak")):
        marks.bar_axis(panel, [_name(name) for name in own["variant"]])
        panel.set(xlabel=label, xlim=(0, 1.2 * panel.dataLim.x1 or 1))
    return figure
