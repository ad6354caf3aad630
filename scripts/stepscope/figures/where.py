"""Where a step's time goes: by kind of kernel, and from the plain step down to the top of the
ladder."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from stepscope.axes import PLAIN_STEP
from stepscope.formulas.flops import linear_step_flops
from stepscope.formulas.traffic import OPTIMIZER_BYTES
from stepscope.model.formats import FORMATS
from stepscope.model.shape import ModelShape
from stepscope.results.tables import Tables, where

from . import colours, ladder, marks, places, theme, words

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
MOST_CELLS = 24
OPTIONS = sorted(PLAIN_STEP.keys() - {"precision"})
RUN = [*places.PLACE, "precision", "changes"]  # what a step and its profile have in common
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


LOOK = {  # part of a step, called as the kind of kernels whose colour it has → its name
    "matmul": "matrix products",
    "fused attention": "fused attention",
    "copy/cast": "casts and copies",
    "elementwise": "other kernels",
    "optimizer": "optimizer",
    "idle": "GPU idle",
}
TOLD_APART = ["matmul", "fused attention", "copy/cast"]


def led(tables: Tables) -> pd.DataFrame:
    """A profiled step, and the fastest rung above it that is profiled, if one is: each by the clock
    as a row of the series, with the cell of its `profile` and its `changes` of the plain step.

    It is the first of a ladder in 16 bits, of the first ladder where that is profiled; where none
    is, the largest plain step.
    """
    cells = tables.rows("cells", study="profile", mode="step", device="cuda", status="ok")
    known = where(cells, cell=set(tables["categories"]["cell"]))
    options = known["options"].str.split().map(sorted).str.join(" ")
    profiles = known.assign(profile=known["cell"], changes=options)[[*RUN, "profile"]]

    rungs = ladder.climbed(tables).dropna(subset="median")
    changes = [_changes(rung) for rung in rungs.to_dict("records")]
    rungs = rungs.assign(changes=pd.Series(changes, rungs.index, "object"))
    begins = where(rungs, precision=["bf16", "fp16"]).drop_duplicates("cell")
    plain = places.plain_steps(tables).dropna(subset="median").assign(changes="")
    largest = places.main_step(tables, plain.merge(profiles, on=RUN))
    start = pd.concat([begins.merge(profiles, on=RUN), largest]).head(1)
    others = where(rungs, cell=set(start["cell"])).merge(profiles, on=RUN)
    others = others[~others["profile"].isin(start["profile"])]
    return places.as_built(tables, pd.concat([start, others.nsmallest(1, "median")]))


def _changes(rung: dict) -> str:
    """The options of a rung that are not neutral, in the order of the alphabet."""
    changed = [name for name in OPTIONS if rung[name] != PLAIN_STEP[name]]
    return " ".join(f"{name}={str(rung[name]).removesuffix('.0')}" for name in changed)


def parts(tables: Tables, run: dict) -> pd.Series:
    """Seconds of the parts of such a step.

    Kernels are those under the profiler, but for the optimizer's own all outside it; attention that
    is written out of smaller operations is among the others. Idle is what the clock exceeds the
    step without the host by: the GPU's clock rate may have been another under the profiler.
    """
    rows = tables.rows("categories", cell=run["profile"])
    times = rows.pivot_table("time", "category", "phase", "sum")
    times = times.reindex(columns=["step", "optimizer"]).fillna(0.0)
    found = (times["step"] - times["optimizer"]).reindex(TOLD_APART).fillna(0.0)
    found["optimizer"] = times["optimizer"].sum()
    busy = tables.row("gaps", cell=run["profile"], phase="step").get("busy", times["step"].sum())
    found["elementwise"] = max(0.0, busy - found.sum())
    same = {name: run[name] for name in ("cell", "variant", "mode", "phase")}
    alone = tables.row("series", quantity="alone_time", **same).get("median", run["median"])
    found["idle"] = max(0.0, run["median"] - alone)
    return found[list(LOOK)]


def bounds(tables: Tables, place: dict, precision: str) -> dict[str, float]:
    """Part → the least that it can take, seconds, NaN if it is not known: linear layers at the best
    rate of a large product (in fp8 the head at bf16's), AdamW's bytes at that of a large copy."""
    known = places.alike(tables["models"], place)
    if known.empty or known["dtype"].iloc[0] not in places.USUAL:  # rates and bytes are of others
        return {}

    model = known.iloc[0].fillna(0)
    flop = [np.nan, 0.0]  # of another model's operations attention's are not told apart
    if model["d_model"]:  # of this project's model: its blocks and its head
        shape = ModelShape.of({name: int(model[name]) for name in SHAPE})
        flop = list(linear_step_flops(shape, int(place["batch"]), int(place["context"])))
    formats = [precision, FORMATS[precision].outside or precision]
    rates = places.best_rates(tables, "matmul").reindex(formats)
    trained = model["trained"] or model["parameters"]
    return {
        "matmul": (flop / rates).sum(skipna=False),
        "optimizer": OPTIMIZER_BYTES * trained / places.best_rates(tables, "copy").max(),
    }


def waterfall(tables: Tables) -> Figure | None:
    """The first step, below it each of its parts where it stands in the step, and the step with all
    changes.

    Of a part the dark share is what is left with all changes, the pale what they win; a line is its
    bound.
    """
    runs = led(tables)
    if runs.empty:
        return None

    every = pd.DataFrame([1e3 * parts(tables, run) for run in runs.to_dict("records")])
    key = {part: colours.of("category", part) for part in LOOK if every[part].any()}
    first = runs.iloc[0].to_dict()
    least = bounds(tables, first, runs["precision"].iloc[-1])
    names = ["first step" if first["changes"] else "plain step", *(LOOK[part] for part in key)]
    names += ["all changes"] * len(runs[1:])

    subject = f"{words.place(first)}; kernels under the profiler"
    figure, panel = theme.single(0.75 + 0.27 * len(names), subject)
    left = 0.0

    for at, (part, colour) in enumerate(key.items(), start=1):
        widths = every[part].tolist()
        for width, alpha in ((widths[0], 0.35), (widths[-1], 1.0)):
            panel.barh(at, width, marks.BAR, left, color=colour, linewidth=0, alpha=alpha)
        told = " → ".join(map(words.number, widths))
        bound = 1e3 * least.get(part, 0.0)
        if bound > 0:
            marks.across_bar(panel, left + bound, at, f"bound {part}")
            told += f" (bound {words.number(bound)})"
        marks.beside_bar(panel, left + np.nanmax([*widths, bound]), at, told)
        left += widths[0]

    ends = zip((0, len(names) - 1), runs["median"], every[list(key)].to_numpy(), strict=False)
    for at, time, own in ends:
        told = f"{words.number(1e3 * time)} ms"
        marks.bar(panel, at, zip(own, key.values(), strict=True), told)

    marks.bar_axis(panel, names, xlim=(0, 1.4 * left), xlabel="ms a step")
    return figure
