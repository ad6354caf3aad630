"""The colours of every figure, by what they stand for. No other module names a colour.

Okabe and Ito, "Color Universal Design" (2008), for series. Each colour has a name, which is its CSS variable in the
web page: the page can recolour a figure for the dark theme. All are distinct, so that a colour identifies its name.
"""

INK = "#1b1c1e"
MUTED = "#5c6066"
GRID = "#dfe1e4"
SHADE = "#f1f2f4"
PAPER = "#fffffe"

PRECISION = {"fp32": "#0072b2", "tf32": "#cc79a7", "bf16": "#d55e00", "fp16": "#009e73"}
# Text in a series' colour has to be darker than a line to be readable on white (contrast 4.5 or more).
PRECISION_TEXT = {"fp32": "#00639c", "tf32": "#98456f", "bf16": "#ad4c00", "fp16": "#007353"}
PHASE = {"forward": "#56b4e9", "backward": "#e69f00", "optimizer": "#9a9a9a", "step": "#33363b"}
OTHER = "#747a80"
# Beside colour, so that lines on top of each other stay visible.
DASHES = {"tf32": (0, (5, 1.5)), "fp16": (0, (3, 2.2))}

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
}


def precision(name: str) -> str:
    """Colour of a precision's line or bar."""
    return PRECISION.get(name, OTHER)


def precision_text(name: str) -> str:
    """Colour of a precision's label."""
    return PRECISION_TEXT.get(name, MUTED)
