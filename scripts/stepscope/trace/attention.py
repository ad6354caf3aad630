"""Which ranges are a whole attention, which lie in the forward pass, and how many blocks the model
has."""

import numpy as np

from stepscope.recordings import names as people
from stepscope.trace.attribution import Attribution
from stepscope.trace.nesting import climb

# A range holds a whole attention if its name has one of the first words and none beside the second
# ones: "attention scores" is a part of it.
ATTENTION = frozenset(["attention", "attn", "mha", "gqa", "mqa", "mla", "sdpa", "multihead"])
BESIDE = frozenset(
    [
        "block", "blocks", "causal", "core", "cross", "decoder", "dot", "encoder", "flash",
        "forward", "fused", "fwd", "grouped", "h", "head", "heads", "layer", "layers", "masked",
        "model", "module", "multi", "pass", "product", "query", "scaled", "self", "sublayer",
        "the", "transformer",
    ]
)  # fmt: skip
FORWARD = ("forward", "inference")


def attention_code(found: Attribution) -> int | None:
    """The name code of the ranges that hold a whole attention; of several names that fit the one of
    the most time."""
    names, codes = found.trace.names, found.codes
    fitting = [
        code for code in np.unique(codes) if not found.operator[code] and is_attention(names[code])
    ]
    return max(fitting, key=lambda code: int(found.lengths[codes == code].sum()), default=None)


def is_attention(name: str) -> bool:
    """Whether this is what people call a whole attention: "self_attn", "scaled dot product
    attention"."""
    words = (
        {word for word in people.words(name) if not word.isdigit()}
        if len(name) <= people.LONGEST
        else set()
    )
    return bool(words & ATTENTION) and words <= ATTENTION | BESIDE


def in_forward(found: Attribution) -> np.ndarray:
    """Mask of the ranges inside the forward pass; of all ranges, if there is no such phase.

    Activation checkpointing runs a part of it again in the backward pass: that does not count.
    """
    codes = found.codes
    phase = next(
        (phase for wanted in FORWARD for phase in found.phases if phase.lower() == wanted), None
    )
    if phase is None:
        return np.ones(len(codes), dtype=bool)
    return climb(found.parent, found.parent, codes != found.trace.names.index(phase)) >= 0


def layers(found: Attribution) -> int | None:
    """Blocks of the model: how many attention ranges a step opens in its forward pass; None if that
    differs or is 0."""
    code = attention_code(found)
    if code is None:
        return None
    codes = found.codes
    own = (codes == code) & in_forward(found)
    nested = (
        climb(found.parent[own], found.parent, codes != code) >= 0
    )  # one within another of its name
    count = int(own.sum() - nested.sum())
    return count // found.steps if count and count % found.steps == 0 else None
