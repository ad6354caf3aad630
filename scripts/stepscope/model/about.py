"""What an option's value says of itself: to figures, pages, the closed form and predictions.
Standard library only.

Each module of an option's package (`stepscope.model.chosen`) has one of these as its ABOUT. It is
read from the file's text without running it, so that planning and reporting need no torch; thus it
holds literals alone. It makes no cell stale: what runs stands outside of it.
"""

from dataclasses import dataclass
from typing import Literal

# What a change takes away from the step before it, by which its gain is predicted: products become
# those of another precision; the scores of attention stay on the chip; the optimizer becomes one
# pass over its numbers; nothing waits for the host. "": nothing predicts it.
TakesAway = Literal["", "arithmetic", "scores", "optimizer", "host"]


@dataclass(frozen=True, kw_only=True)
class About:
    """label: what people call the value. title: what the change is called, as an order: "Fuse
    AdamW". mechanism: why it helps, in sentences. recipe: how to have it in one's own code. The
    last three are Markdown."""

    label: str
    title: str = ""
    mechanism: str = ""
    recipe: str = ""
    takes_away: TakesAway = ""


@dataclass(frozen=True, kw_only=True)
class Attention(About):
    """keeps: what it saves for the backward pass: the "scores", or what a "fused" kernel needs;
    `stepscope.formulas.footprint` has a list of each. masks_window: whether it is told of a sliding
    window by a mask of (context x context). By default it is a fused one. package: of Python, whose
    kernels it runs where that is installed."""

    keeps: Literal["scores", "fused"] = "fused"
    masks_window: bool = False
    mechanism: str = "The context × context scores never reach memory."
    takes_away: TakesAway = "scores"
    package: str = ""


@dataclass(frozen=True, kw_only=True)
class Optimizer(About):
    """state: tensors in fp32 that it keeps of each parameter's shape. workspace: dimensions of what
    a step needs besides, in fp32: "parameters", "largest parameter", "" for nothing. None of
    either: not known, so that the peak has no closed form."""

    state: int | None
    workspace: str | None


@dataclass(frozen=True, kw_only=True)
class Loss(About):
    """keeps: what it saves for the backward pass; "in-chunks": gradients of what the head is given
    and of its weight, as logits are made in chunks. is_fused: whether a compiler leaves out what
    lies between the logits and their gradient."""

    keeps: Literal["logits", "log-softmax", "in-chunks"]
    is_fused: bool = False


@dataclass(frozen=True, kw_only=True)
class Precision(About):
    """colour: of its lines and bars, by a name of `stepscope.figures.colours`. data_sheet: the
    field of a GPU's data sheet that has its rate. tolerance: how far gradients of the same step may
    differ, relative; `stepscope.results.agreement` says why. None: it is another computation, whose
    difference is stated and not judged."""

    colour: str
    data_sheet: str
    tolerance: float | None
    takes_away: TakesAway = "arithmetic"
