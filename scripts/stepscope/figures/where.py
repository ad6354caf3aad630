"""Where a step's time goes: by kind of kernel, and from the plain step down to the top of the
ladder."""

import math
from dataclasses import dataclass, fields

import pandas as pd
from matplotlib.figure import Figure

from stepscope.figures import colours, marks, places, theme, words
from stepscope.formulas.flops import linear_step_flops
from stepscope.formulas.traffic import OPTIMIZER_BYTES
from stepscope.model.formats import FORMATS
from stepscope.model.shape import ModelShape
from stepscope.results.tables import Tables

# Softmax kernels of both directions are one colour, and what moves or sets bytes is no work of its
# own.
MERGED = {"softmax forward": "softmax", "softmax backward": "softmax", "memory set/copy": "other"}
PASSES = {
    "forward": ("forward", "inference"),
    "backward": ("backward",),
    "optimizer": ("optimizer",),
}
DETAILS = ("detail=autograd", "detail=python")  # of a profile, not of the step
MOST_CELLS = 24
SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")


def categories(tables: Tables) -> Figure | None:
    """A row a profiled cell, a panel a pass: GPU time (without a GPU: operator time) by kind of
    kernel."""
    rows = tables.rows("categories", options="", mode="step")
    rows = rows[rows["phase"].isin([phase for own in PASSES.values() for phase in own])]
    if rows.empty:
        return None
    rows = rows.assign(category=rows["category"].replace(MERGED))
    cells = places.in_order(tables, rows.drop_duplicates("cell"))[-MOST_CELLS:]
    drawn = set(rows.loc[rows["time"] > 0, "category"])
    key = {name: colour(name) for name in colours.THINGS["category"] if name in drawn}
    height = 1.2 + 0.17 * len(cells)
    subject = "time a step of the profiled steps"
    figure, axes = theme.panels(1, 3, height, subject, key, sharex=True, sharey=True)
    for panel, (name, phases) in zip(axes[0], PASSES.items(), strict=True):
        of_pass = rows[rows["phase"].isin(phases)].groupby(["cell", "category"])["time"].sum()
        for at, cell in enumerate(cells["cell"]):
            parts = [(1e3 * of_pass.get((cell, each), 0.0), shade) for each, shade in key.items()]
            end = marks.stack(panel, at, parts)
            marks.beside_bar(panel, end, at, words.number(end), fontsize=7)
        marks.bar_axis(panel, places.names(cells))
        panel.set(title=name, xlabel="ms")
    longest = max(panel.dataLim.x1 for panel in axes[0] if panel.patches)
    axes[0, 0].set_xlim(0, 1.3 * longest)
    return figure


def colour(category: str) -> str:
    """Of a kind of kernels."""
    return colours.of("category", MERGED.get(category, category))


@dataclass(frozen=True)
class Parts:
    """Parts of a whole training step on a GPU, seconds; they add up to the step, or to the kernels
    if those are more.

    attention: fused kernels; what is written out of smaller operations is `other`. All but the
    optimizer's own are outside it. idle: what is left of the step by the clock.
    """

    products: float
    attention: float
    casts: float
    other: float
    optimizer: float
    idle: float

    @property
    def step(self) -> float:
        """Their sum."""
        return sum(getattr(self, each.name) for each in fields(self))


LOOK = {
    "products": ("matrix products", "matmul"),
    "attention": ("fused attention", "fused attention"),
    "casts": ("casts and copies", "copy/cast"),
    "other": ("other kernels", "elementwise"),
    "optimizer": ("optimizer", "optimizer"),
    "idle": ("GPU idle", "idle"),
}


def parts(tables: Tables, cell: str, step: float) -> Parts | None:
    """The parts of a profiled cell whose step takes so many seconds without a profiler; None where
    it lacks a table."""
    rows = tables.rows("categories", cell=cell)
    busy = tables.row("gaps", cell=cell, phase="step").get("busy")
    if rows.empty or busy is None:
        return None
    by = rows.groupby(["phase", "category"])["time"].sum()
    of_step, of_optimizer = (
        by[by.index.get_level_values("phase") == phase].droplevel("phase")
        for phase in ("step", "optimizer")
    )
    outside = of_step.sub(of_optimizer, fill_value=0.0)
    products = outside.get("matmul", 0.0)
    attention = outside.get("fused attention", 0.0)
    casts = outside.get("copy/cast", 0.0)
    optimizer = of_optimizer.sum()
    other = max(0.0, busy - products - attention - casts - optimizer)
    return Parts(products, attention, casts, other, optimizer, max(0.0, step - busy))


def bounds(
    tables: Tables, size: str, context: float, batch: float, precision: str
) -> dict[str, float]:
    """Part → the least that it can take, seconds: linear layers at the best rate of a large product
    (in fp8 the head at bf16's), AdamW's bytes at that of a large copy; what is not known is left
    out."""
    model = tables.row("models", size=size, context=context, batch=batch)
    rates = tables.rows("series", study="ceilings", quantity="rate", variant="burst")
    of_products = rates[rates["size"] == "matmul"].groupby("precision")["median"].first()
    of_copy = rates[rates["size"] == "copy"]["median"]
    found = {}
    work = {precision: model.get("flop", 0)}
    if model.get("vocab_size", 0) > 0:
        fewer = model.get("key_value_heads", 0)  # 0, or missing: as many as heads
        heads_of_keys = {"key_value_heads": 0 if math.isnan(fewer) else int(fewer)}
        shape = ModelShape.of({name: int(model[name]) for name in SHAPE} | heads_of_keys)
        blocks, head = linear_step_flops(shape, int(batch), int(context))
        other = FORMATS[precision].outside
        work = {precision: blocks, other: head} if other else {precision: blocks + head}
    if work[precision] > 0 and set(work) <= set(of_products.index):
        found["products"] = sum(flop / of_products[name] for name, flop in work.items())
    trained = model.get("trained", model.get("parameters", 0))
    if trained > 0 and len(of_copy):
        found["optimizer"] = OPTIMIZER_BYTES * trained / of_copy.iloc[0]
    return found


@dataclass(frozen=True)
class Waterfall:
    """Row of the profiled plain step, its parts; those of the top of the ladder, where it is
    profiled; the bounds. cells: of both."""

    row: dict
    cells: tuple[str, ...]
    plain: Parts
    top: Parts | None
    bounds: dict[str, float]


def waterfall_of(tables: Tables) -> Waterfall | None:
    """At the largest place of the ladder that is profiled plainly in bf16; where there is none, the
    largest place."""
    ladder = tables.rows(
        "series", study="ladder", quantity="time", mode="step", phase="step"
    ).dropna(subset=["median"])
    every = tables.rows(
        "cells", study="profile", mode="step", precision=["bf16", "fp8"], device="cuda", status="ok"
    )
    cells = every[every["precision"] == "bf16"]
    both = cells.merge(ladder[places.PLACE].drop_duplicates(), on=places.PLACE)
    for candidates in (both, cells):
        plain = places.largest(tables, candidates[candidates["options"] == ""])
        if len(plain):
            found = _waterfall(tables, plain.iloc[0].to_dict(), every, ladder)
            if found:
                return found
    return None


def _waterfall(
    tables: Tables, row: dict, cells: pd.DataFrame, ladder: pd.DataFrame
) -> Waterfall | None:
    rungs = places.at_place(ladder, row)
    steps = places.at_place(places.free_steps(tables), row)
    both = pd.concat([rungs, steps])
    timed = both[both["precision"] == row["precision"]]
    plain = parts(tables, row["cell"], timed["median"].iloc[0]) if len(timed) else None
    if plain is None:
        return None
    top, last = None, row["precision"]
    drawn = [row["cell"]]
    if len(rungs):
        fastest = rungs.sort_values("median").iloc[0]
        changed = places.at_place(cells, row)
        is_changed = ~changed["options"].isin(["", *DETAILS])
        changed = changed[is_changed & (changed["precision"] == fastest["precision"])]
        if len(changed):
            most = max(changed.to_dict("records"), key=lambda each: each["options"].count("="))
            top, last = parts(tables, most["cell"], fastest["median"]), fastest["precision"]
            drawn += [most["cell"]] if top else []
    limits = bounds(tables, row["size"], row["context"], row["batch"], last)
    return Waterfall(row, tuple(drawn), plain, top, limits)


def waterfall(tables: Tables) -> Figure | None:
    """The plain bf16 step, below it each of its parts where it stands in the step, and the step
    with all changes.

    Of a part the dark share is what is left with all changes, the pale what they win; a line is its
    bound.
    """
    found = waterfall_of(tables)
    if found is None:
        return None
    steps = [each for each in (found.plain, found.top) if each]
    shown = [part for part in LOOK if any(getattr(step, part) for step in steps)]
    names = ["plain step", *(LOOK[part][0] for part in shown)]
    if found.top:
        names.append("all changes")
    subject = words.place(found.row, precision=True) + "; the vertical line is a part's bound"
    figure, axes = theme.panels(1, 1, 0.75 + 0.27 * len(names), subject)
    panel = axes[0, 0]
    left = 0.0
    for at, part in enumerate(shown, start=1):
        before, shade = 1e3 * getattr(found.plain, part), colours.of("category", LOOK[part][1])
        after = 1e3 * getattr(found.top, part) if found.top else before
        for place, width, alpha in ((0, before, 1.0), (at, before, 0.35), (at, after, 1.0)):
            look: marks.Look = {"height": marks.BAR, "color": shade, "linewidth": 0}
            panel.barh(place, width, left=left, alpha=alpha, **look)
        text = words.number(before)
        if found.top:
            text += f" → {words.number(after)}"
        bound = 1e3 * found.bounds.get(part, 0.0)
        if bound:
            line: marks.Look = {"linewidth": 1.6, "label": f"bound {part}"}
            panel.plot([left + bound] * 2, [at - 0.46, at + 0.46], color=colours.INK, **line)
            text += f" (bound {words.number(bound)})"
        marks.beside_bar(panel, left + max(before, after, bound), at, text)
        left += before
    marks.beside_bar(panel, left, 0, f"{words.number(left)} ms", fontweight="bold")
    if found.top:
        widths = [1e3 * getattr(found.top, part) for part in LOOK]
        shades = [colours.of("category", category) for _, category in LOOK.values()]
        end = marks.stack(panel, len(names) - 1, zip(widths, shades, strict=True))
        marks.beside_bar(panel, end, len(names) - 1, f"{words.number(end)} ms", fontweight="bold")
    marks.bar_axis(panel, names)
    panel.set(xlim=(0, 1.4 * left), xlabel="ms a step")
    return figure
