"""Where a step's time goes: by kind of kernel, and from the plain step down to the top of the
ladder."""

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from stepscope.axes import PLAIN_STEP
from stepscope.figures import colours, ladder, marks, places, theme, words
from stepscope.formulas.flops import linear_step_flops
from stepscope.formulas.traffic import OPTIMIZER_BYTES
from stepscope.model.formats import FORMATS
from stepscope.model.shape import ModelShape
from stepscope.results.tables import Tables, where

# Softmax kernels of both directions are one colour, and what moves or sets bytes is no work of its
# own.
MERGED = {
    "softmax forward": "softmax",
    "softmax backward": "softmax",
    "memory set/copy": "other",
}
PASSES = {  # phase → the panel in which it is drawn
    "forward": "forward",
    "inference": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
}
ASIDE = "detail=|start="  # options of a profile that are none of the step
MOST_CELLS = 24
OPTIONS = [name for name in PLAIN_STEP if name != "precision"]
SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size", "key_value_heads")


def merged(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows by the kinds of kernels that have a colour of their own."""
    return rows.assign(category=rows["category"].replace(MERGED))


def categories(tables: Tables) -> Figure | None:
    """A row a profiled cell, a panel a pass: GPU time (without a GPU: operator time) by kind of
    kernel."""
    rows = merged(tables.rows("categories", options="", mode="step", phase=set(PASSES)))
    if rows.empty:
        return None

    cells = places.in_order(tables, rows.drop_duplicates("cell"))[-MOST_CELLS:]
    key = colours.key("category", set(rows.loc[rows["time"] > 0, "category"]))
    rows = rows.assign(panel=rows["phase"].map(PASSES), ms=1e3 * rows["time"])

    names = list(dict.fromkeys(PASSES.values()))
    subject = "time a step of the profiled steps"

    figure, panels = theme.panels(
        1,
        len(names),
        1.2 + 0.17 * len(cells),
        subject,
        key,
        sharex=True,
        sharey=True,
    )

    for panel, name in zip(panels, names, strict=True):
        of_pass = where(rows, panel=name).pivot_table("ms", "cell", "category", "sum")
        widths = of_pass.reindex(cells["cell"])
        marks.keyed_bars(panel, widths, key, places.names(cells), title=name, xlabel="ms")

    longest = max(panel.dataLim.x1 for panel in panels if panel.patches)
    panels[0].set_xlim(0, 1.3 * longest)
    return figure


LOOK = {  # part of a step → its name, and the kind of kernels whose colour it has
    "products": ("matrix products", "matmul"),
    "attention": ("fused attention", "fused attention"),
    "casts": ("casts and copies", "copy/cast"),
    "other": ("other kernels", "elementwise"),
    "optimizer": ("optimizer", "optimizer"),
    "idle": ("GPU idle", "idle"),
}


@dataclass(frozen=True)
class Step:
    """A profiled whole training step on a GPU.

    time: seconds by the clock, without a profiler. parts: of LOOK, seconds. Kernels are those under
    the profiler, but for the optimizer's own all outside it; attention that is written out of
    smaller operations is `other`. Idle is what the clock exceeds the step without the host by: the
    GPU's clock rate may have been another under the profiler.
    """

    cell: str
    time: float
    parts: dict[str, float]


def profiled(tables: Tables, cell: str, clock: dict) -> Step | None:
    """A profiled cell; None where it lacks a table. clock: the row of the series of its step by the
    clock."""
    rows = tables.rows("categories", cell=cell)
    busy = tables.row("gaps", cell=cell, phase="step").get("busy")
    if rows.empty or busy is None:
        return None

    of_phase = rows.pivot_table("time", "category", "phase", "sum")
    of_phase = of_phase.reindex(columns=["step", "optimizer"]).fillna(0.0)
    outside = of_phase["step"] - of_phase["optimizer"]
    kinds = ("products", "attention", "casts")
    parts = {part: outside.get(LOOK[part][1], 0.0) for part in kinds}
    parts["optimizer"] = of_phase["optimizer"].sum()
    parts["other"] = max(0.0, busy - sum(parts.values()))
    time = clock["median"]
    same = {name: clock[name] for name in ("cell", "variant", "mode", "phase")}
    alone = tables.row("series", quantity="alone_time", **same).get("median", time)
    parts["idle"] = max(0.0, time - alone)
    return Step(cell, time, parts)


def bounds(tables: Tables, place: dict, precision: str) -> dict[str, float]:
    """Part → the least that it can take, seconds: linear layers at the best rate of a large product
    (in fp8 the head at bf16's), AdamW's bytes at that of a large copy; what is not known is left
    out."""
    known = places.alike(tables["models"], place)
    if known.empty or known["dtype"].iloc[0] not in places.USUAL:  # rates and bytes are of others
        return {}

    model = known.iloc[0].fillna(0)
    work = {precision: model["flop"]}
    if model["d_model"]:  # of this project's model
        shape = ModelShape.of({name: int(model[name]) for name in SHAPE})
        blocks, head = linear_step_flops(shape, int(place["batch"]), int(place["context"]))
        other = FORMATS[precision].outside
        work = {precision: blocks, other: head} if other else {precision: blocks + head}
    found = {}
    of_products = places.best_rates(tables, "matmul")
    if work[precision] and set(work) <= set(of_products.index):
        found["products"] = sum(flop / of_products[name] for name, flop in work.items())
    of_copy = places.best_rates(tables, "copy")
    trained = model["trained"] or model["parameters"]
    if trained and len(of_copy):
        found["optimizer"] = OPTIMIZER_BYTES * trained / of_copy.iloc[0]
    return found


@dataclass(frozen=True)
class Waterfall:
    """place: the row of the profiled first step. steps: that step, and the top of the ladder where
    it is profiled. bounds: in the precision of the last of them."""

    place: dict
    steps: list[Step]
    bounds: dict[str, float]


def waterfall_of(tables: Tables) -> Waterfall | None:
    """Of the ladder that begins at what people run if its first rung is profiled, else
    plain_waterfall()."""
    return _todays(tables) or plain_waterfall(tables)


def _todays(tables: Tables) -> Waterfall | None:
    """From the first rung to the fastest of the others that are profiled."""
    climbed = ladder.climbed(tables)
    rungs = where(climbed, cell=set(climbed["cell"].head(1))).merge(tables["variants"])
    if rungs.empty or "+" not in rungs["variant"].iloc[0]:  # it begins with one change, or none
        return None

    place = rungs.iloc[0].to_dict()
    changes = [_changes(rung) for rung in rungs.to_dict("records")]
    cells = _profiles(tables, place)
    cells["changes"] = cells["options"].str.split().map(sorted).str.join(" ")
    runs = rungs.assign(changes=changes).merge(cells[["precision", "changes", "profile"]])
    is_first = runs["variant"] == place["variant"]
    runs = pd.concat([runs[is_first], runs[~is_first].sort_values("median")])
    return _led(tables, place, runs) if is_first.any() else None


def _changes(rung: dict) -> str:
    """The options of a rung that are not neutral, in the order of the alphabet."""
    changed = [name for name in sorted(OPTIONS) if rung[name] != PLAIN_STEP[name]]
    return " ".join(f"{name}={str(rung[name]).removesuffix('.0')}" for name in changed)


def _profiles(tables: Tables, place: dict | None = None) -> pd.DataFrame:
    """Profiled whole steps on a GPU, without more detail than kernels, their cells as `profile`."""
    cells = tables.rows("cells", study="profile", mode="step", device="cuda", status="ok")
    plain = cells[~cells["options"].str.contains(ASIDE)].assign(profile=cells["cell"])
    return places.alike(plain, place) if place else plain


def plain_waterfall(tables: Tables) -> Waterfall | None:
    """At the largest place of the ladder that is profiled plainly in bf16, to the profile of the
    most changes in the precision of the fastest rung; where there is none, the largest place."""
    plain = where(_profiles(tables), options="", precision="bf16")
    plain = places.largest(tables, places.on_ladders(tables, plain))
    if plain.empty:
        return None

    place = places.as_built(tables, plain).iloc[0].to_dict()
    rungs, alone = (
        places.alike(places.plain_steps(tables, study=study), place).dropna(subset="median")
        for study in ("ladder", "timing")
    )
    start = where(pd.concat([rungs, alone]), precision="bf16").head(1)
    cells = _profiles(tables, place)
    cells["changes"] = cells["options"].str.count("=")
    changed = cells[["precision", "changes", "profile"]][cells["changes"] > 0]
    top = rungs.nsmallest(1, "median").merge(changed).nlargest(1, "changes")
    return _led(tables, place, pd.concat([start.assign(profile=place["cell"]), top]))


def _led(tables: Tables, place: dict, runs: pd.DataFrame) -> Waterfall | None:
    """From the first of these runs to the next that is profiled, each by the clock and with the
    cell of its profile; None where the first is not."""
    steps = [profiled(tables, run["profile"], run) for run in runs.to_dict("records")]
    known = {at: step for at, step in enumerate(steps) if step}
    if 0 not in known:
        return None
    ends = list(known)[:2]
    precision = runs["precision"].iloc[ends[-1]]
    return Waterfall(place, [known[at] for at in ends], bounds(tables, place, precision))


def waterfall(tables: Tables) -> Figure | None:
    """The plain bf16 step, below it each of its parts where it stands in the step, and the step
    with all changes.

    Of a part the dark share is what is left with all changes, the pale what they win; a line is its
    bound.
    """
    found = waterfall_of(tables)
    if found is None:
        return None

    shown = [part for part in LOOK if any(step.parts[part] for step in found.steps)]
    first = "first step" if found.place.get("variant") else "plain step"
    names = [first, *(LOOK[part][0] for part in shown), "all changes"]
    names = names[: len(shown) + len(found.steps)]
    told = f"{words.place(found.place)}; kernels under the profiler"

    figure, panel = theme.single(0.75 + 0.27 * len(names), told)
    left = 0.0

    for at, part in enumerate(shown, start=1):
        shade = colours.of("category", LOOK[part][1])
        widths = [1e3 * step.parts[part] for step in found.steps]
        for width, alpha in ((widths[0], 0.35), (widths[-1], 1.0)):
            panel.barh(
                at,
                width,
                marks.BAR,
                left,
                color=shade,
                linewidth=0,
                alpha=alpha,
            )
        text = " → ".join(words.number(width) for width in widths)
        bound = 1e3 * found.bounds.get(part, 0.0)
        if bound:
            marks.across_bar(panel, left + bound, at, f"bound {part}")
            text += f" (bound {words.number(bound)})"
        marks.beside_bar(panel, left + max(*widths, bound), at, text)
        left += widths[0]

    for at, step in zip((0, len(names) - 1), found.steps, strict=False):
        parts = [
            (1e3 * step.parts[part], colours.of("category", kind))
            for part, (_, kind) in LOOK.items()
        ]
        told = f"{words.number(1e3 * step.time)} ms"
        marks.bar(panel, at, parts, told, fontweight="bold")

    marks.bar_axis(panel, names, xlim=(0, 1.4 * left), xlabel="ms a step")
    return figure
