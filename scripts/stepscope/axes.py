"""The values that a cell's axes take, with what is known of each. Standard library only.

Everything else that lists precisions, modes, phases or options takes them from here, in this order.
"""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Precision:
    """A precision in which matrix products are computed.

    dtype: torch's name for the type of their operands and results; bytes: of an element of it.
    is_autocast: whether the forward pass runs under autocast, with weights in fp32. capability: the
    least CUDA compute capability. tolerance: how far gradients of the same step may differ,
    relative; stepscope.results.agreement says why. None: it is another computation, whose
    difference is stated and not judged.
    """

    name: str
    dtype: str
    bytes: int
    is_autocast: bool
    capability: tuple[int, int]
    tolerance: float | None


PRECISIONS = {
    one.name: one
    for one in (
        Precision("fp32", "float32", 4, is_autocast=False, capability=(0, 0), tolerance=1e-4),
        Precision(
            "tf32", "float32", 4, is_autocast=False, capability=(8, 0), tolerance=16 * 2.0**-11
        ),
        Precision(
            "bf16", "bfloat16", 2, is_autocast=True, capability=(8, 0), tolerance=16 * 2.0**-8
        ),
        Precision(
            "fp16", "float16", 2, is_autocast=True, capability=(0, 0), tolerance=16 * 2.0**-8
        ),
        # bf16's, but for the products of the blocks, whose operands have one byte
        Precision("fp8", "bfloat16", 1, is_autocast=True, capability=(8, 9), tolerance=None),
    )
}

# What is timed: its name in columns of tables -> in samples and in text.
PHASES = {
    "inference": "inference",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "forward_backward": "forward+backward",
    "step": "step",
}


@dataclass(frozen=True)
class Mode:
    """How far a cell goes.

    column: its name in columns of tables. phases: what one step of it consists of, in their order.
    whole: the phase that all of them together are, timed without waiting between them.
    """

    name: str
    column: str
    phases: tuple[str, ...]
    whole: str


# From the least memory to the most.
MODES = {
    one.name: one
    for one in (
        Mode("inference", "inference", ("inference",), "inference"),
        Mode("forward", "forward", ("forward",), "forward"),
        Mode("forward-backward", "forward_backward", ("forward", "backward"), "forward+backward"),
        Mode("step", "step", ("forward", "backward", "optimizer"), "step"),
    )
}

# How the same model is run, with the value that stands neither in a path nor in a spec.
NEUTRAL = {
    **{
        "mode": "step",
        "attention": "naive",
        "compile": "none",
        "optimizer": "own",
        "checkpoint": 0,
        "repeat": 1,
    },
    **{"key_value_heads": 0, "window": 0},  # as many as heads; all positions before one
}


class Implementation(NamedTuple):
    """An implementation that the attention study compares: a module of stepscope.model.attention,
    and how it is run."""

    module: str
    how: str


IMPLEMENTATIONS = {
    "naive": Implementation("naive", "as it is"),
    "compiled": Implementation("naive", "under torch.compile"),
    "sdpa-flash": Implementation(
        "sdpa", "FLASH_ATTENTION"
    ),  # the backend's name in torch.nn.attention.SDPBackend
    "sdpa-cudnn": Implementation("sdpa", "CUDNN_ATTENTION"),
    "sdpa-efficient": Implementation("sdpa", "EFFICIENT_ATTENTION"),
    "flex": Implementation("flex", "as it is"),
    "triton": Implementation("triton", "as it is"),
}
DIRECTIONS = ("forward", "backward")
# Which keys a query sees: all, or those up to its own position, counted from the first query and
# the first key (the upper left corner of the scores) or from the last of both (the lower right
# corner).
FULL, CAUSAL, LOWER_RIGHT = MASKS = ("full", "causal", "causal-lower-right")


def option(spec: dict, name: str) -> str | int:
    """The value of an option in a spec, which lacks the neutral ones."""
    return spec.get(name, NEUTRAL[name])


def modes_up_to(last: str) -> list[str]:
    """The modes of a cell that goes as far as `last`, the lightest first."""
    names = list(MODES)
    return names[: names.index(last) + 1]
