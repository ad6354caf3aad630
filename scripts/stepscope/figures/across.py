"""Figures of all machines: steps side by side, and ours beside published numbers."""

from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme, words
from stepscope.figures.steps import quotient
from stepscope.results.tables import Tables

SHADES = ("black", "blue", "vermillion", "green", "orange", "purple", "sky")
MOST_PLACES = 24
NUMBERS = ("mean", "median", "value")  # a ratio of two standard deviations says nothing


def machines(tables: Tables) -> Figure | None:
    """A row a place and precision, a mark a machine: its step over that of the first machine."""
    steps = places.usual_batch(places.free_steps(tables)).dropna(subset=["median"])
    names = [each for each in tables.machines if each in set(steps["machine"])]
    if len(names) < 2:
        return None
    key = {name: colours.OKABE_ITO[SHADES[at % len(SHADES)]].light for at, name in enumerate(names)}
    where = [*places.PLACE, "precision"]
    base, others = steps[steps["machine"] == names[0]], steps[steps["machine"] != names[0]]
    both = others.merge(base, on=where, suffixes=("", "_base"))
    both = both.assign(**quotient(both, "", "_base"))
    ordered = places.in_order(tables, both.drop_duplicates(where))
    rows = ordered[-MOST_PLACES:].reset_index(drop=True)
    if rows.empty:
        return None
    subject = f"a whole training step, times that on {words.short(names[0], 30)}"
    height = 0.85 + 0.17 * len(rows)
    figure, axes = theme.panels(1, 1, height, subject, {name: key[name] for name in names[1:]})
    panel = axes[0, 0]
    panel.set_xscale("log")
    panel.axvline(1, color=key[names[0]], linewidth=0.9, zorder=1)
    for at, row in enumerate(rows.to_dict("records")):
        is_here = (both[where] == [row[name] for name in where]).all(axis=1)
        for each in both[is_here].to_dict("records"):
            colour = key[each["machine"]]
            marks.point(panel, each["median"], at, colour, each["machine"])
            marks.intervals(panel, [at], [each["low"]], [each["high"]], colour, horizontal=True)
    marks.bar_axis(panel, places.names(rows))
    marks.log_axis(panel.xaxis, *panel.get_xlim())
    panel.set_xlabel("times as long")
    return figure


def published(tables: Tables) -> Figure | None:
    """A row a source and study, a mark a number: published over ours, on a logarithmic axis; 1 is
    as long as here."""
    rows = tables.rows("published", quantity="time", statistic=NUMBERS)
    rows = rows[rows["measured"].gt(0) & rows["ratio"].gt(0) & (rows["doubt"].fillna("") == "")]
    if rows.empty:
        return None
    groups = {
        (str(source), str(gpu), str(study)): own
        for (source, gpu, study), own in rows.groupby(["source", "gpu", "study"], sort=True)
    }
    subject = "published time over ours at the same place"
    figure, axes = theme.panels(1, 1, 0.75 + 0.26 * len(groups), subject)
    panel = axes[0, 0]
    panel.set_xscale("log")
    panel.axvline(1, color=colours.MUTED, linewidth=0.9, zorder=1)
    colour = colours.OKABE_ITO[colours.ACCENT].light
    names = []
    for at, ((source, gpu, study), own) in enumerate(groups.items()):
        look: marks.Look = {"marker": "|", "markersize": 8, "linestyle": "none", "color": colour}
        panel.plot(own["ratio"], [at] * len(own), label=source, **look)
        middle = own["ratio"].median()
        marks.point(panel, middle, at, colours.INK, "_median", markersize=4.5)
        told = f"{words.number(middle, 2)} (median of {len(own)})"
        marks.beside_bar(panel, own["ratio"].max(), at, told)
        names.append(f"{source}, {words.short(gpu or 'GPU not named', 16)}: {study}")
    marks.bar_axis(panel, names)
    low, high = min(0.8, rows["ratio"].min()), max(1.25, rows["ratio"].max())
    panel.set(xlabel="times as long as ours", xlim=(low / 1.2, high * (high / low) ** 0.65))
    marks.log_axis(panel.xaxis, low, high)
    return figure
