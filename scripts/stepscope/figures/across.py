"""Figures of all machines: steps side by side, and ours beside published numbers."""

from itertools import cycle

from matplotlib.figure import Figure

from stepscope.results.tables import Tables

from . import colours, marks, places, theme, words
from .steps import relative

STEP = [*places.PLACE, "precision"]  # what a row is of
MOST_PLACES = 24
NUMBERS = ("mean", "median", "value")  # a ratio of two standard deviations says nothing


def machines(tables: Tables) -> Figure | None:
    """A row a place and precision, a mark a machine: its step over that of the first machine."""
    steps = places.tried_steps(tables).dropna(subset="median")
    names = [each for each in tables.machines if each in set(steps["machine"])]
    if len(names) < 2:
        return None

    first, *others = names
    ratios = places.in_order(tables, relative(steps, steps["machine"] == first, STEP))
    rows = ratios.drop_duplicates(STEP)[-MOST_PLACES:]
    if rows.empty:
        return None

    shades = zip(names, cycle(colours.OKABE_ITO.values()), strict=False)  # again and again
    light = {name: shade.light for name, shade in shades}
    subject = f"a whole training step, times that on {words.short(first, 30)}"
    key = {name: light[name] for name in others}

    figure, panel = theme.single(0.85 + 0.17 * len(rows), subject, key)
    panel.set_xscale("log")
    panel.axvline(1, **(marks.BASE | {"color": light[first]}))

    for at, row in enumerate(rows.to_dict("records")):
        for each in places.alike(ratios, row, STEP).to_dict("records"):
            name = each["machine"]
            marks.measured(panel, at, each, light[name], name)

    marks.bar_axis(panel, places.names(rows), xlabel="times as long")
    marks.log_axis(panel.xaxis, *panel.get_xlim())
    return figure


def published(tables: Tables) -> Figure | None:
    """A row a source and study, a mark a number: published over ours, on a logarithmic axis; 1 is
    as long as here."""
    every = tables.rows("published", quantity="time", statistic=NUMBERS, doubt="")
    rows = every[every["ratio"] > 0]
    if rows.empty:
        return None

    groups = list(rows.groupby(["source", "gpu", "study"]))

    figure, panel = theme.single(
        0.75 + 0.26 * len(groups), "published time over ours at the same place"
    )
    panel.set_xscale("log")
    panel.axvline(1, **marks.BASE)
    names = []

    for at, (key, own) in enumerate(groups):
        source, gpu, study = map(str, key)
        ratios = own["ratio"]
        panel.plot(ratios, [at] * len(own), "|", color=colours.ACCENT, label=source, markersize=8)
        middle = ratios.median()
        panel.plot(middle, at, "o", color=colours.INK, label="_median", markersize=4.5)
        told = f"{words.number(middle, 2)} (median of {len(own)})"
        marks.beside_bar(panel, ratios.max(), at, told)
        names.append(f"{source}, {words.short(gpu or 'GPU not named', 16)}: {study}")

    low, high = min(0.8, rows["ratio"].min()), max(1.25, rows["ratio"].max())
    # Right of the marks there is room for the words beside them.
    limits = (low / 1.2, high * (high / low) ** 0.65)
    marks.bar_axis(panel, names, xlabel="times as long as ours", xlim=limits)
    marks.log_axis(panel.xaxis, low, high)
    return figure
