"""The values that a cell's axes take, with what is known of each. Standard library only.

Everything else that lists modes, phases, masks or neutral options takes them from here, in this
order; values of options that are modules of their own are listed in `stepscope.model.chosen`.
"""

from typing import Any, NamedTuple

# What is timed: its name in columns of tables -> in samples and in text.
PHASES = {
    "inference": "inference",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "forward_backward": "forward+backward",
    "step": "step",
}


class Mode(NamedTuple):
    """How far a cell goes.

    phases: what one step of it consists of, in their order. whole: the phase that all of them
    together are, timed without waiting between them.
    """

    phases: tuple[str, ...]
    whole: str


# From the least memory to the most.
MODES = {
    "inference": Mode(("inference",), "inference"),
    "forward": Mode(("forward",), "forward"),
    "forward-backward": Mode(("forward", "backward"), "forward+backward"),
    "step": Mode(("forward", "backward", "optimizer"), "step"),
}

_PLAIN: dict[str, str | int] = {
    "attention": "naive",
    "compile": "none",
    "optimizer": "own",
    "loss": "own",
    "checkpoint": 0,  # all is kept
}
# The plain step: all that a rung of a ladder can change, with the value that it starts from.
PLAIN_STEP = {"precision": "fp32", **_PLAIN}
# In the place of a precision: a step of one's own is as its file builds it.
BUILT = "built"
# The value of an option that stands neither in a path nor in a spec. A precision always does.
NEUTRAL: dict[str, str | int] = {
    "mode": "step",
    **_PLAIN,
    "key_value_heads": 0,  # as many as heads
    "window": 0,  # all positions before one
    "devices": 1,
}


class Implementation(NamedTuple):
    """An implementation that the attention study compares: a module of stepscope.model.attention,
    and how it is run."""

    module: str
    how: str = "as it is"


IMPLEMENTATIONS = {
    "naive": Implementation("naive"),
    "compiled": Implementation("naive", "under torch.compile"),
    # of sdpa the backend's name in torch.nn.attention.SDPBackend
    "sdpa-flash": Implementation("sdpa", "FLASH_ATTENTION"),
    "sdpa-cudnn": Implementation("sdpa", "CUDNN_ATTENTION"),
    "sdpa-efficient": Implementation("sdpa", "EFFICIENT_ATTENTION"),
    "flex": Implementation("flex"),
    "flex-flash": Implementation("flex_flash"),
    "fa3": Implementation("fa3"),
    "fa4": Implementation("fa4"),
    "triton": Implementation("triton"),
}
DIRECTIONS = ("forward", "backward")
FULL, CAUSAL = MASKS = ("full", "causal")  # a query sees all keys, or those up to its own position


def option(spec: dict, name: str) -> Any:
    """The value of an option in a spec, which lacks the neutral ones: an int of what is counted,
    else text."""
    return spec.get(name, NEUTRAL[name])


def is_step(spec: dict) -> bool:
    """Whether a spec is of a step of one's own, or of several."""
    return any(part.get("step") for part in (spec, *(spec.get("variants") or [])))


def modes_up_to(last: str) -> list[str]:
    """The modes of a cell that goes as far as `last`, the lightest first."""
    names = list(MODES)
    return names[: names.index(last) + 1]
