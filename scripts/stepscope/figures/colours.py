"""The colours of every figure, light and dark, and what each stands for. No other module and no
style sheet names one.

Okabe and Ito, "Color Universal Design" (2008), for series; greys for axes. A figure is drawn in the
light colours; the page replaces each by its CSS variable and is given the values of both themes by
`css`.
"""

from collections.abc import Container
from dataclasses import dataclass

from stepscope.model.formats import PRECISIONS


@dataclass(frozen=True)
class Colour:
    """light, dark: of lines and bars in each theme. text, dark_text: of words beside them, with a
    contrast of 4.5."""

    light: str
    dark: str
    text: str
    dark_text: str


OKABE_ITO = {
    "blue": Colour("#0072b2", "#3d9fdb", "#00639c", "#6db9ea"),
    "sky": Colour("#56b4e9", "#86ccf5", "#1f6f9e", "#a5dafa"),
    "green": Colour("#009e73", "#1fb88b", "#007353", "#4ccda6"),
    "orange": Colour("#e69f00", "#eab040", "#8a5f00", "#f0bf5c"),
    "vermillion": Colour("#d55e00", "#ee7a22", "#ad4c00", "#f79a52"),
    "purple": Colour("#cc79a7", "#d98fb8", "#98456f", "#e3a6c7"),
    "yellow": Colour("#f0e442", "#e8dd55", "#6b6400", "#efe67d"),
    "black": Colour("#33363b", "#d5d8dc", "#24272b", "#dfe1e4"),
    "grey": Colour("#9a9fa6", "#7b828a", "#5a5f66", "#a9afb6"),
    "pale": Colour("#d3d7dc", "#434a53", "#5b6067", "#a8aeb5"),
}
# Light and dark values of what is no series.
GREYS = {
    "ink": ("#1b1c1e", "#e4e6e9"),
    "muted": ("#5c6066", "#a2a8b0"),
    "grid": ("#dfe1e4", "#2c3036"),
    "paper": ("#fffffe", "#0d1117"),  # a page's own
}
INK, MUTED, GRID, PAPER = (light for light, _ in GREYS.values())
ON_BAR = "#111213"  # words on a bar or an area, in both themes
ACCENT = OKABE_ITO["blue"].light  # of what is one of a kind

# What a thing is, wherever it is drawn, is of one colour: the optimizer's time, kernels and state
# are green.
THINGS = {
    "precision": {name: said.colour for name, said in PRECISIONS.items()},
    "phase": {
        "inference": "sky",
        "forward": "sky",
        "backward": "orange",
        "optimizer": "green",
    },
    "category": {
        "matmul": "blue",
        "fused attention": "vermillion",
        "softmax": "vermillion",
        "normalisation": "yellow",
        "elementwise": "orange",
        "copy/cast": "purple",
        "reduction": "sky",
        "optimizer": "green",
        "communication": "black",
        "other": "grey",
        "idle": "pale",
    },
    "rank": {
        "computing alone": "blue",
        "slowed": "vermillion",
        "elsewhere": "purple",
        "extra kernels": "orange",
        "transfer": "black",
        "waiting": "grey",
        "idle": "pale",
    },
    "memory": {  # from below
        "parameters": "blue",
        "optimizer state": "green",
        "gradients": "orange",
        "cast weights": "purple",
        "activations": "sky",
        "workspace": "yellow",
        "buffers": "black",
        "unknown": "pale",
        "other": "grey",
    },
    "attention": {
        "naive": "black",
        "compiled": "purple",
        "sdpa-flash": "blue",
        "sdpa-cudnn": "sky",
        "sdpa-efficient": "green",
        "flex": "orange",
        "triton": "vermillion",
    },
    "way": {
        "GPU busy": "green",
        "without the host": "orange",
        "by the clock": "blue",
    },
    "first step": {
        "module loading": "blue",
        "memory allocation": "green",
        "matrix products": "vermillion",
        "compiled code": "purple",
        "operators": "sky",
        "Python and the rest": "orange",
        "other API calls": "yellow",
        "waiting for the device": "pale",
        "the profiler itself": "grey",
    },
}


def of(kind: str, name: str) -> str:
    """Colour of a line or bar: of a kind of things the one of this name, grey where it has none."""
    return OKABE_ITO[THINGS[kind].get(name, "grey")].light


def key(kind: str, drawn: Container[str]) -> dict[str, str]:
    """Name → colour of those things of a kind that are drawn, in the order in which they stand."""
    return {name: of(kind, name) for name in THINGS[kind] if name in drawn}


def text_of(colour: str) -> str:
    """Colour of words beside a line or bar of this colour; ink where there is none."""
    return next((each.text for each in OKABE_ITO.values() if each.light == colour), INK)


def _variables() -> dict[str, tuple[str, str]]:
    """Light colour → (name of its CSS variable, dark colour)."""
    found = {light: (f"figure-{name}", dark) for name, (light, dark) in GREYS.items()}
    for name, each in OKABE_ITO.items():
        found[each.light] = (f"figure-{name}", each.dark)
        found[each.text] = (f"figure-{name}-text", each.dark_text)
    return found


VARIABLES = _variables()


def css() -> str:
    """The variables of a style sheet: light; dark where the reader's system or `data-theme` on the
    root asks for it; light again on paper."""
    light = " ".join(f"--{name}: {colour};" for colour, (name, _) in VARIABLES.items())
    dark = " ".join(f"--{name}: {colour};" for name, colour in VARIABLES.values())
    return (
        f":root {{ {light} }}\n"
        f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}\n'
        f':root[data-theme="dark"] {{ {dark} }}\n'
        f"@media print {{ :root:root, :root[data-theme] {{ {light} }} }}\n"
    )
