"""The colours, dashes and marks of every figure, by what they stand for. No other module names a colour.

Okabe and Ito, "Color Universal Design" (2008), for series. Each colour has a name, which is its CSS variable in the
web page: the page can recolour a figure for the dark theme. All are distinct, so that a colour identifies its name.
"""

import re

INK = "#1b1c1e"
MUTED = "#5c6066"
GRID = "#dfe1e4"
SHADE = "#f1f2f4"
PAPER = "#fffffe"
ON_BAR = "#111213"  # text on a bar, in both themes

PRECISION = {"fp32": "#0072b2", "tf32": "#cc79a7", "bf16": "#d55e00", "fp16": "#009e73"}
# Text in a series' colour has to be darker than a line to be readable on white (contrast 4.5 or more).
PRECISION_TEXT = {"fp32": "#00639c", "tf32": "#98456f", "bf16": "#ad4c00", "fp16": "#007353"}
PHASE = {"forward": "#56b4e9", "backward": "#e69f00", "optimizer": "#9a9a9a", "step": "#33363b"}
OTHER = "#747a80"
# What a kernel does, in the order of stepscope.trace.categories. From Okabe and Ito where two are near each other in a
# figure; a shade beside a precision's or a phase's colour, since a colour identifies its name.
CATEGORY = {
    "matmul": "#2a88c8",
    "fused attention": "#63bdf0",
    "softmax forward": "#c86fa3",
    "softmax backward": "#a9689a",
    "normalisation": "#e2d438",
    "elementwise": "#d8631a",
    "copy/cast": "#eba91f",
    "reduction": "#12a27b",
    "optimizer": "#8c6d46",
    "communication": "#7d7f00",
    "memory set/copy": "#2a2d33",
    "other": "#b3b8be",
}
# What memory is for, in the order of stepscope.snapshot.table_names, bottom to top; neighbours are far apart.
MEMORY = {
    "parameters": "#2c86c4",
    "gradients": "#e7a11c",
    "optimizer state": "#159f78",
    "activations": "#6cbfed",
    "cast weights": "#db6a26",
    "buffers": "#e6d944",
    "workspace": "#cb78aa",
    "unknown": "#abb1b8",
}
# Implementations of attention, in the order of stepscope.axes: Okabe and Ito without the yellow.
ATTENTION = {
    "naive": "#2e3136",
    "compiled": "#c4719c",
    "sdpa-flash": "#1170ad",
    "sdpa-cudnn": "#4eaee4",
    "sdpa-efficient": "#0c9870",
    "flex": "#e2a00c",
    "triton": "#d0590a",
}
ATTENTION_TEXT = {
    "naive": "#24272b",
    "compiled": "#9a4a73",
    "sdpa-flash": "#0a4f80",
    "sdpa-cudnn": "#1a76a9",
    "sdpa-efficient": "#0a7456",
    "flex": "#8a5f00",
    "triton": "#ab4a06",
}
# What the host does in a step, in the order of the first step's parts; set-up work first.
FIRST_STEP = {
    "module loading": "#1b7fbf",
    "memory allocation": "#0e9f79",
    "matrix products": "#d9651d",
    "compiled code": "#8a6fc0",
    "other API calls": "#c9709d",
    "waiting for the device": "#a8aeb5",
    "the profiler itself": "#6d7680",
    "operators": "#60baee",
    "Python and the rest": "#e5a419",
}
RANGE = "#e3e7ec"
RANGE_ATTENTION = "#c3cdd8"
CALL = "#848b93"
LANE = "#f6f7f8"
# Beside colour, so that lines on top of each other stay visible.
DASHES = {"tf32": (0, (5, 1.5)), "fp16": (0, (3, 2.2))}
ATTENTION_MARKERS = {"naive": "o", "compiled": "s", "sdpa-flash": "^", "sdpa-cudnn": "v", "sdpa-efficient": "D",
                     "flex": "P", "triton": "h"}  # fmt: skip

VARIABLES = {
    INK: "figure-ink",
    MUTED: "figure-muted",
    GRID: "figure-grid",
    SHADE: "figure-shade",
    PAPER: "figure-paper",
    OTHER: "figure-other",
    **{colour: f"figure-{name}" for name, colour in PRECISION.items()},
    **{colour: f"figure-{name}-text" for name, colour in PRECISION_TEXT.items()},
    **{colour: f"figure-{name}" for name, colour in PHASE.items()},
    **{colour: f"figure-category-{re.sub('[^a-z]+', '-', name)}" for name, colour in CATEGORY.items()},
    **{colour: f"figure-memory-{name.replace(' ', '-')}" for name, colour in MEMORY.items()},
    **{colour: f"figure-attention-{name}" for name, colour in ATTENTION.items()},
    **{colour: f"figure-attention-{name}-text" for name, colour in ATTENTION_TEXT.items()},
    **{colour: f"figure-first-{name.lower().replace(' ', '-')}" for name, colour in FIRST_STEP.items()},
    RANGE: "figure-range",
    RANGE_ATTENTION: "figure-range-attention",
    CALL: "figure-call",
    LANE: "figure-lane",
}


def precision(name: str) -> str:
    """Colour of a precision's line or bar."""
    return PRECISION.get(name, OTHER)


def precision_text(name: str) -> str:
    """Colour of a precision's label."""
    return PRECISION_TEXT.get(name, MUTED)


def category(name: str) -> str:
    """Colour of a category's bar or rectangles."""
    return CATEGORY.get(name, CATEGORY["other"])


def attention(name: str) -> str:
    """Colour of an implementation's line or bar."""
    return ATTENTION.get(name, OTHER)


def attention_text(name: str) -> str:
    """Colour of an implementation's label."""
    return ATTENTION_TEXT.get(name, MUTED)


def attention_rank(name: str) -> tuple[int, str]:
    """Sort key: the implementations in the order of their colours, then any other by name."""
    names = list(ATTENTION)
    return (names.index(name) if name in names else len(names), str(name))


def first_step(part: str) -> str:
    """Colour of a part of a step."""
    return FIRST_STEP.get(part, OTHER)
