"""Made-up tables with round numbers, and what can be read from a figure that is drawn of them.

The GPU of made_up.py has sizes small and large (1e8 and 1e9 parameters) at contexts 128 and 512 in
fp32 and bf16. A step takes context × (1 in fp32, 0.5 in bf16) × (1 in small, 4 in large) ms, and
half of it without the host, with an interval of ± 1 %; large at 512 in fp32 ran out of memory. A
machine `other` takes twice as long.
"""

import io
import itertools

import made_up
import matplotlib
import numpy as np
from made_up import GPU, of
from stepscope.figures import theme
from stepscope.results.tables import Tables

BAR = "lane start end label category"  # of a timeline
PARAMETERS = {"small": 1e8, "large": 1e9}
SHARES = {"forward": 0.3, "backward": 0.6, "optimizer": 0.1}  # of a step
ALONE = {"bf16": 1.0, "sdpa": 0.5}  # seconds of the same without the host
RUNGS = {  # variant: (what it changes, after, seconds of a step, verdict)
    "fp32": ({"precision": "fp32"}, "", 4.0, ""),
    "bf16": ({"precision": "bf16"}, "fp32", 2.0, "faster"),
    "sdpa": ({"attention": "sdpa"}, "bf16", 1.6, "faster"),
    "checkpoint=1": ({"checkpoint": 1}, "bf16", 2.4, "slower"),
}


def step_time(size, context, precision):
    """Seconds."""
    return 1e-3 * context * {"fp32": 1, "bf16": 0.5}[precision] * {"small": 1, "large": 4}[size]


def lost(status):
    """What a row of series.csv has instead of numbers."""
    return {"median": None, "low": None, "high": None, "status": status}


def timing(label=GPU, factor=1.0):
    """Tables of the timing study; the GPU's reserved memory is 2 GiB at context 128, 8 at 512."""
    tables = []
    for size, context, precision in itertools.product(PARAMETERS, (128, 512), ("fp32", "bf16")):
        where = made_up.place(size, context, precision)
        limits, reserved = "launches" if context == 128 else "gpu", 2**30 * context / 64
        step = factor * step_time(size, context, precision)
        alone = {"host_free_time": 0.5 * step, "launches": 1000}
        made = made_up.timing(label, where, step, limits, reserved, **alone)
        if (size, context, precision) == ("large", 512, "fp32"):
            made["series"] = [made["series"][0] | lost("oom")]
        tables.append(made)
    return made_up.joined(*tables)


def ladder():
    """Tables of a ladder at large, 512."""
    peaks = dict.fromkeys(RUNGS, 2**30)
    where = made_up.place("large", 512)
    return made_up.ladder(f"{GPU}/ladder/large/ctx512", where, RUNGS, "gpu", peaks, ALONE)


def cell(study, size, context, precision, *options):
    """A row of cells.csv."""
    name = "/".join([GPU, study, size, f"ctx{context}", precision, *options])
    about = made_up.place(size, context, precision)
    return made_up.cell(name, **about, options=" ".join(options))


PLAIN = cell("profile", "large", 512, "bf16")
TOP = cell("profile", "large", 512, "bf16", "attention=sdpa")
MEMORY = cell("memory", "large", 512, "bf16")
COURSES = [  # further recordings of memory
    cell("memory", "large", 512, "bf16", "start=cold"),
    cell("memory", "large", 512, "bf16", "mode=inference") | {"options": "", "mode": "inference"},
    cell("memory", "large", 512, "bf16", "mode=forward") | {"options": "", "mode": "forward"},
]
LEARNING = cell("learning", "small", 128, "fp32")


def kernels(cell, factor):
    """Categories of a profiled step: outside the optimizer 0.4 s of products, 0.2 s of casts, 0.3 s
    of others, of which the forward pass has half; 0.1 s of the optimizer."""
    rows = [
        ("optimizer", "elementwise", 0.1),
        ("step", "matmul", 0.4),
        ("step", "copy/cast", 0.2),
        ("step", "elementwise", 0.4),
    ]
    for phase in ("forward", "backward"):
        rows += [(phase, "matmul", 0.2), (phase, "copy/cast", 0.1), (phase, "elementwise", 0.15)]
    return [
        of(cell, phase=phase, category=kind, time=factor * time, calls=10)
        for phase, kind, time in rows
    ]


def rank(variant, number):
    """A rank's step of 120 ms on two devices."""
    parts = {"alone": 0.09, "slowed": 0.01, "apart": -0.002, "extra": 0.004, "gone": 0.0}
    parts |= {"at_once": -0.002, "waiting": 0.005, "transfer": 0.01, "idle": 0.005}
    where = of(f"{GPU}/parallel/medium/ctx512/bf16/devices=2", devices=2)
    return where | {"variant": variant, "rank": number, "clock": 0.12} | parts


def everything():
    """All tables by name."""
    event = of(PLAIN["cell"], view="step")
    one = event | {"view": "one attention"}
    moment = of(MEMORY["cell"], reserved=30 * 2**30, parameters=10 * 2**30)
    learned = of(LEARNING["cell"], frequencies=3.1)
    forced = {"operation": "dropout", "quantity": "share", "format": "fp16"}
    theirs = {"source": "write-up 1", "gpu": "T4", "study": "timing"}
    theirs |= {"quantity": "time", "statistic": "mean", "measured": 0.1}
    own = {
        "cells": [PLAIN, TOP, MEMORY, LEARNING, *COURSES],
        "models": [
            {"machine": GPU, "size": size, "context": context, "batch": 4}
            | {"parameters": number, "trained": number, "flop": number * 1e4}
            for size, number in PARAMETERS.items()
            for context in (128, 512)
        ],
        "categories": [*kernels(PLAIN["cell"], 1.0), *kernels(TOP["cell"], 0.5)],
        "gaps": [
            of(PLAIN["cell"], phase="step", busy=1.0),
            of(TOP["cell"], phase="step", busy=0.5),
        ],
        "timeline": [
            *made_up.rows(
                event,
                BAR,
                ("ranges 0", 0.0, 1.0, "step", "range"),
                ("GPU 0, stream 7", 0.1, 0.4, "gemm", "matmul"),
                ("GPU 0, stream 7", 0.5, 0.9, "add", "elementwise"),
            ),
            *made_up.rows(
                one,
                BAR,
                ("ranges 0", 0.0, 0.2, "attention", "range"),
                ("ranges 1", 0.1, 0.2, "softmax", "range"),
            ),
        ],
        "modules": made_up.rows(
            of(PLAIN["cell"], kind="module"),
            "module gpu_time flop bytes",
            ("FFN", 0.2, 4e13, 2e11),
            ("softmax", 0.2, 4e10, 2e11),
            ("RoPE(Q)", 0.05, 1e10, 5e10),
            ("RoPE(K)", 0.05, 1e10, 5e10),
            ("own range", 0.3, None, None),
        ),
        "phases": [of(PLAIN["cell"], phase="optimizer", gpu_time=0.1, flop=1e10, bytes=1e11)],
        "memory_timeline": [
            *made_up.rows(
                moment,
                "time phase activations",
                (0.0, "forward", 0),
                (0.5, "backward", 15 * 2**30),
                (1.0, "optimizer", 5 * 2**30),
            ),
            *(
                of(each["cell"], time=time, phase="forward", activations=(1 + time) * 2**30)
                for each in COURSES
                for time in (0.0, 0.5)
            ),
        ],
        "learning": [
            learned | {"variant": "fp32", "rank": 0, "own_precision": "fp32"},
            learned
            | {"variant": "fp16-scaled", "rank": 1, "own_precision": "fp16", "is_scaled": True},
        ],
        "curves": [
            of(LEARNING["cell"], variant=name, order=order, step=step, loss=5.0 - step / 10 + order)
            for name in ("fp32", "fp16-scaled")
            for order in (1, 2)
            for step in (5, 10)
        ],
        "ranks": [rank(variant, number) for variant in ("alone", "ddp") for number in (0, 1)],
        "forced": made_up.rows(
            forced,
            "way value error",
            ("all in the format", 1, 1e-3),
            ("all in the format", 10, 0.0),
        ),
        "published": [theirs | {"value": at, "ratio": at / 0.1} for at in (0.2, 0.4)],
    }
    return made_up.joined(
        own,
        timing(),
        timing("other", 2.0),
        ladder(),
        made_up.attention(GPU),
        made_up.ceilings(GPU, {"bf16": 2.5e14}, 2e12),
        made_up.formats(GPU),
        made_up.cold(GPU, made_up.place("small", 128, "fp32")),
    )


def folder(path, without=(), **instead):
    """All tables in a folder, but those named; `instead` has other rows for some."""
    made = everything() | instead
    return made_up.write_tables(path, {name: made[name] for name in made.keys() - without})


def tables(path, machine=GPU, without=(), **instead):
    """The same, read."""
    return Tables(folder(path, without, **instead), machine)


def draw(function, of):
    """The figure, laid out as when it is written; None where there is none."""
    with matplotlib.rc_context(theme.STYLE):
        figure = function(of)
        if figure is not None:
            figure.draw_without_rendering()
    return figure


def plot():
    """An SVG of matplotlib: lines, broken and dashed ones, round markers, bars, hatches, text
    upright and turned, clips."""
    random = np.random.default_rng(0)
    figure = matplotlib.figure.Figure(figsize=(6, 4))
    left, right = figure.subplots(1, 2)
    for shift in range(3):
        values = np.cumsum(random.normal(size=200)) + shift
        values[50:60] = np.nan
        left.plot(values, marker="o", markevery=20)
    left.hlines(range(5), 0, random.uniform(1, 100, 5), linestyles="dashed", colors="#336699")
    left.set_ylabel("turned\u00a0text & <signs>", rotation=90)
    right.bar(range(4), random.uniform(0, 1e6, 4), hatch="//", edgecolor="#123456")
    right.step(range(4), [0, 2, 2, 1])
    right.text(1, 2, "at −45°", rotation=-45)
    written = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "test"}):
        figure.savefig(written, format="svg")
    return written.getvalue()


def texts(artist):
    """All visible words."""
    return [
        each.get_text()
        for each in artist.findobj(matplotlib.text.Text)
        if each.get_text() and each.get_visible()
    ]


def rows_named(panel):
    """What stands beside the rows."""
    return [each.get_text() for each in panel.get_yticklabels()]


def panels(figure):
    """Title → panel."""
    return {each.get_title(loc="left"): each for each in figure.axes if each.get_visible()}


def lines(panel):
    """Label → points of the lines that have one, rounded to nine digits."""
    drawn = {each.get_label(): each for each in panel.lines}
    found = {name: each for name, each in drawn.items() if name and not name.startswith("_")}
    return {
        name: [(float(x), round(float(y), 9)) for x, y in each.get_xydata()]
        for name, each in found.items()
    }


def bars(panel, at):
    """(left end, width) of the bars at a place, rounded to nine digits."""
    own = [each for each in panel.patches if abs(each.get_y() + each.get_height() / 2 - at) < 1e-6]
    return [(round(each.get_x(), 9), round(each.get_width(), 9)) for each in own]


def spans(panel, horizontal=False):
    """(place, low, high) of the intervals that are drawn."""
    along = 0 if horizontal else 1
    found = []
    for each in panel.collections:
        if each.get_label() == "_interval":
            for low, high in each.get_segments():
                found.append((low[1 - along], low[along], high[along]))
    return [tuple(round(float(value), 9) for value in each) for each in found]


def crosses(panel):
    """Places where memory ran out."""
    marks = [each for each in panel.collections if each.get_label() == "_oom"]
    return [float(x) for each in marks for x, _ in each.get_offsets()]
