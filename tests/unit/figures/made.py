"""Made-up tables with round numbers, and what can be read from a figure that is drawn of them.

Machine `big` has sizes small and large (1e8 and 1e9 parameters) at contexts 128 and 512 in fp32 and
bf16. A step takes context × (1 in fp32, 0.5 in bf16) × (1 in small, 4 in large) ms, with an
interval of ± 10 %; large at 512 in fp32 ran out of memory.
"""

import itertools

import made_up
import matplotlib
import pandas as pd
from stepscope.figures import theme
from stepscope.results.option_labels import LABELS
from stepscope.results.schema import TABLES
from stepscope.results.tables import Tables

BAR = "lane start end label category"  # of a timeline
PARAMETERS = {"small": 1e8, "large": 1e9}
SHARES = {"forward": 0.3, "backward": 0.6, "optimizer": 0.1}  # of a step
ALONE = {"bf16": 1.0, "sdpa": 0.5}  # seconds of the same without the host
RUNGS = {
    "fp32": 4.0,
    "bf16": 2.0,
    "sdpa": 1.6,
    "checkpoint=1": 2.4,
    "checkpoint=2": 2.3,
}  # seconds of a step
AFTER = {"bf16": "fp32", "sdpa": "bf16", "checkpoint=1": "bf16", "checkpoint=2": "bf16"}
PEAKS = {"fp32": 40, "bf16": 30, "sdpa": 20, "checkpoint=1": 10, "checkpoint=2": 12}  # GiB


def step_time(size, context, precision):
    """Seconds."""
    return 1e-3 * context * {"fp32": 1, "bf16": 0.5}[precision] * {"small": 1, "large": 4}[size]


def interval(median, width=0.1):
    """The three columns."""
    return {"median": median, "low": median * (1 - width), "high": median * (1 + width)}


def place(study, size, context, precision, options="", machine="big"):
    """The columns of a cell's place."""
    end = f"/{options}" if options else ""
    own = f"/{precision}" if precision else ""
    return {
        "machine": machine,
        "study": study,
        "size": size,
        "context": context,
        "batch": 4,
        "precision": precision,
        "options": options,
        "cell": f"{machine}/{study}/{size}/ctx{context}{own}{end}",
    }


def timing(machine="big", factor=1.0):
    """Series of the timing study."""
    rows = []
    for size, context, precision in itertools.product(PARAMETERS, (128, 512), ("fp32", "bf16")):
        own = place("timing", size, context, precision, machine=machine)
        own |= {"variant": "step", "mode": "step", "unit": "s", "status": "ok"}
        own |= {"limits": "launches" if context == 128 else "gpu"}
        time = own | {"quantity": "time"}
        step = factor * step_time(size, context, precision)
        if (size, context, precision) == ("large", 512, "fp32"):
            rows.append(time | {"phase": "step", "status": "oom"})
            continue
        free = {"phase": "step", "quantity": "host_free_time"}
        launched = {"phase": "step", "quantity": "launches", "unit": "1", "median": 1000}
        reserved = {"quantity": "peak_reserved", "unit": "B", "median": 2**30 * context / 64}
        rows += [
            time | {"phase": "step"} | interval(step),
            own | free | interval(0.5 * step),
            own | launched,
            own | reserved,
        ]
        rows += [time | {"phase": each} | interval(of * step) for each, of in SHARES.items()]
    return rows


def ladder():
    """(series, comparisons) of a ladder at large, 512."""
    own = place("ladder", "large", 512, "") | {"mode": "step", "unit": "s", "status": "ok"}
    series, comparisons = [], []
    for variant, step in RUNGS.items():
        mine = own | {"variant": variant, "precision": "fp32" if variant == "fp32" else "bf16"}
        series.append(mine | {"phase": "step", "quantity": "time"} | interval(step, 0.01))
        series += [
            mine | {"phase": phase, "quantity": "time", "median": share * step}
            for phase, share in SHARES.items()
        ]
        if variant in ALONE:
            alone = {"phase": "step", "quantity": "alone_time", "median": ALONE[variant]}
            series.append(mine | alone)
        allocated = {"quantity": "peak_allocated", "unit": "B", "median": PEAKS[variant] * 2**30}
        series.append(mine | allocated)
        for before in dict.fromkeys([AFTER.get(variant), "fp32"] if variant in AFTER else []):
            ratio = RUNGS[before] / step
            judged = {"a": before, "b": variant, "phase": "step", "quantity": "time"} | {
                "ratio": ratio
            }
            comparisons.append(own | judged | {"verdict": "faster" if ratio > 1 else "slower"})
    return series, [
        {name: row[name] for name in row if name in TABLES["comparisons"].names}
        for row in comparisons
    ]


def variants():
    """What the rungs and asides of that ladder change."""
    cell = place("ladder", "large", 512, "")["cell"]
    return [
        {
            "machine": "big",
            "cell": cell,
            "variant": variant,
            "order": order,
            "after": AFTER.get(variant, ""),
            "is_aside": "checkpoint" in variant,
            "label": LABELS.get(variant, variant),
            "changed": "checkpoint" if "checkpoint" in variant else "precision",
        }
        for order, variant in enumerate(RUNGS)
    ]


def attention():
    """Series of the attention study: naive takes length² ns and is out of memory at 4096; triton
    takes a tenth."""
    rows = []
    own = place("attention", "d64", 0, "bf16", "mask=causal") | {"context": None, "status": "ok"}
    for variant, factor in (("naive", 1.0), ("triton", 0.1)):
        for length in (256, 1024, 4096):
            for direction in ("forward", "backward"):
                here = own | {"variant": variant, "length": length, "direction": direction}
                if variant == "naive" and length == 4096:
                    rows.append(here | {"quantity": "time", "unit": "s", "status": "oom"})
                    continue
                rows.append(
                    here | {"quantity": "time", "unit": "s"} | interval(1e-9 * factor * length**2)
                )
                rows.append(here | {"quantity": "rate", "unit": "FLOP/s"} | interval(1e13 / factor))
    return rows


def ceilings():
    """250 TFLOP/s in bf16 and 2 TB/s in a burst; 200 TFLOP/s sustained."""
    own = {"machine": "big", "study": "ceilings", "quantity": "rate", "status": "ok"}
    product = own | {"size": "matmul", "precision": "bf16", "unit": "FLOP/s", "cell": "big/c/m"}
    copy = own | {"size": "copy", "precision": "fp32", "unit": "B/s", "cell": "big/c/c"}
    return [
        product | {"variant": "sustained", "median": 2e14},
        product | {"variant": "burst", "median": 2.5e14},
        copy | {"variant": "burst", "median": 2e12},
    ]


PLAIN = place("profile", "large", 512, "bf16")
TOP = place("profile", "large", 512, "bf16", "attention=sdpa")
COLD = place("profile", "small", 128, "fp32", "start=cold")
MEMORY = place("memory", "large", 512, "bf16")
COURSES = [  # further recordings of memory
    MEMORY | {"cell": f"{MEMORY['cell']}/mode={mode}", "mode": mode}
    for mode in ("inference", "forward")
]
COURSES.append(place("memory", "large", 512, "bf16", "start=cold"))
LEARNING = place("learning", "small", 128, "fp32")


def kernels(cell, factor):
    """Categories of a profiled step: outside the optimizer 0.4 s of products, 0.2 s of casts, 0.3 s
    of others, of which the forward pass has half; 0.1 s of the optimizer."""
    kinds = {"matmul": 0.4, "copy/cast": 0.2, "elementwise": 0.3}
    rows = [
        ("optimizer", "elementwise", 0.1),
        ("step", "matmul", 0.4),
        ("step", "copy/cast", 0.2),
        ("step", "elementwise", 0.4),
    ]
    rows += [
        (phase, kind, time / 2) for phase in ("forward", "backward") for kind, time in kinds.items()
    ]
    return [
        {
            "machine": "big",
            "cell": cell,
            "phase": phase,
            "category": kind,
            "time": factor * time,
            "calls": 10,
        }
        for phase, kind, time in rows
    ]


def rank(variant, number):
    """A rank's step of 120 ms on two devices."""
    parts = {"alone": 0.09, "slowed": 0.01, "apart": -0.002, "extra": 0.004, "gone": 0.0}
    parts |= {"at_once": -0.002, "waiting": 0.005, "transfer": 0.01, "idle": 0.005}
    where = {"machine": "big", "cell": "big/parallel/medium/ctx512/bf16/devices=2", "devices": 2}
    return where | {"variant": variant, "rank": number, "clock": 0.12} | parts


def everything():
    """All tables by name."""
    series, comparisons = ladder()
    series = [*timing(), *timing("other", 2.0), *series, *attention(), *ceilings()]
    series += [COLD | {"quantity": "launches", "status": "ok"}]
    cells = {row["cell"]: {name: row.get(name) for name in PLAIN} for row in series}
    every = (PLAIN, TOP, COLD, MEMORY, LEARNING, *COURSES)
    cells |= {each["cell"]: each for each in every}
    measured = {"mode": "step", "status": "ok", "device": "cuda", "memory": 80 * 2**30}

    def of(cell, **more):
        return {"machine": "big", "cell": cell} | more

    event = of(PLAIN["cell"], view="step")
    one = event | {"view": "one attention"}
    moment = of(MEMORY["cell"], reserved=30 * 2**30, parameters=10 * 2**30)
    cold = of(COLD["cell"], phase="step")
    rounding = of("big/precision/accumulation", times=1000, exact=10.0)
    learned = of(LEARNING["cell"], frequencies=3.1)
    warm = place("timing", "small", 128, "fp32")["cell"]
    steady = of(warm, phase="step", steady=0.1)
    forced = of("big/precision/softmax", operation="softmax", quantity="largest logit")
    theirs = {"source": "write-up 1", "gpu": "T4", "study": "timing"}
    theirs |= {"quantity": "time", "statistic": "mean", "measured": 0.1, "cell": warm}
    return {
        "series": series,
        "comparisons": comparisons,
        "variants": variants(),
        "cells": [measured | row for row in cells.values()],
        "models": [
            {"machine": "big", "size": size, "context": context, "batch": 4}
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
        "modules": [
            of(PLAIN["cell"], kind="module", module=name, gpu_time=seconds, flop=flop, bytes=size)
            for name, seconds, flop, size in (
                ("FFN", 0.2, 4e13, 2e11),
                ("softmax", 0.2, 4e10, 2e11),
                ("RoPE(Q)", 0.05, 1e10, 5e10),
                ("RoPE(K)", 0.05, 1e10, 5e10),
                ("own range", 0.3, None, None),
            )
        ],
        "phases": [
            of(cell["cell"], phase="optimizer", gpu_time=0.1, flop=1e10, bytes=1e11)
            for cell in (PLAIN, TOP)
        ],
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
        "first_step": made_up.rows(
            cold, "part first later", ("operators", 0.3, 0.1), ("module loading", 0.2, 0.0)
        ),
        "warmup": made_up.rows(steady, "skipped mean std", (0, 0.2, 0.05), (2, 0.1, 0.01)),
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
        "sums": [
            rounding | {"variant": f"{name} += {name}", "sum_dtype": name, "sum": total}
            for name, total in (("fp32", 10.001), ("bf16", 4.0))
        ],
        "forced": [
            forced | {"way": way, "format": "fp16", "value": value, "error": error}
            for way in ("all in the format", "under autocast")
            for value, error in ((1, 1e-3), (10, 0.0))
        ],
        "published": [theirs | {"value": at, "ratio": at / 0.1} for at in (0.2, 0.4)],
    }


def folder(path, without=(), **instead):
    """All tables in a folder, but those named; `instead` has other rows for some."""
    rows = {name: own for name, own in (everything() | instead).items() if name not in without}
    path.mkdir(parents=True, exist_ok=True)
    for name, own in rows.items():
        pd.DataFrame(own).reindex(columns=TABLES[name].names).to_csv(
            path / f"{name}.csv", index=False
        )
    return path


def tables(path, machine="big", without=(), **instead):
    """The same, read."""
    return Tables(folder(path, without, **instead), machine)


def draw(function, of):
    """The figure, laid out as when it is written; None where there is none."""
    with matplotlib.rc_context(theme.STYLE):
        figure = function(of)
        if figure is not None:
            figure.draw_without_rendering()
    return figure


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
    found = {each.get_label(): each for each in panel.lines if not each.get_label().startswith("_")}
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
    found = []
    for each in panel.lines:
        if each.get_label() == "_interval":
            x, y = each.get_data()
            places, ends = (y, x) if horizontal else (x, y)
            found += [
                tuple(round(float(v), 9) for v in (places[i], ends[i], ends[i + 1]))
                for i in range(0, len(ends), 3)
            ]
    return found


def crosses(panel):
    """Places where memory ran out."""
    return [float(each.get_xdata()[0]) for each in panel.lines if each.get_label() == "_oom"]
