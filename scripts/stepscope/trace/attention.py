"""Which ranges are a whole attention, and which lie in the forward pass."""

import re

import numpy as np

from stepscope.recordings import names as people

from .attribution import Attribution
from .nesting import climb

# A range holds a whole attention if its name has one of the first words and none beside the second
# ones: "attention scores" is a part of it.
_ATTENTION = re.compile(r"attention|attn|m[hq]a|gqa|mla|sdpa|multihead")
_BESIDE = re.compile(
    r"blocks?|causal|core|cross|decoder|dot|encoder|flash|forward|fused|fwd|grouped|h|heads?"
    r"|layers?|masked|model|module|multi|pass|product|query|scaled|self|sublayer|the|transformer"
)


def attention_code(found: Attribution) -> int | None:
    """The name code of the ranges that hold a whole attention; of several names that fit the one of
    the most time."""
    fits = ~found.operator & found.trace.names_that(is_attention)
    time = np.bincount(found.codes, found.lengths, len(fits))
    there = [code for code in np.unique(found.codes).tolist() if fits[code]]
    return max(there, key=lambda code: time[code], default=None)


def is_attention(name: str) -> bool:
    """Whether this is what people call a whole attention: "self_attn", "scaled dot product
    attention"."""
    if len(name) > people.LONGEST:
        return False
    words = {word for word in people.words(name) if not word.isdigit()}
    others = [word for word in words if not _ATTENTION.fullmatch(word)]
    return len(others) < len(words) and all(map(_BESIDE.fullmatch, others))


def in_forward(found: Attribution) -> np.ndarray:
    """Mask of the ranges inside the forward pass; of all ranges, if there is no such phase.

    Activation checkpointing runs a part of it again in the backward pass: that does not count.
    """
    of = {phase.lower(): phase for phase in reversed(found.phases)}
    phase = of.get("forward", of.get("inference"))
    if phase is None:
        return np.ones(len(found.codes), dtype=bool)
    return climb(found.parent, found.parent, found.codes != found.trace.names.index(phase)) >= 0
