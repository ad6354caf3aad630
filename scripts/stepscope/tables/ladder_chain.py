"""The rungs of a ladder: where a cell stands, what it is called, what it is compared with, and whether it agrees.

The plan's order is the ladder: each cell of the chain changes one option of the cell before it. Cells with
checkpointing, and those whose model is compiled as a whole, stand beside the chain.

A rung agrees if it computes the same step: its loss and gradients are compared with those of the ladder's first rung.
A format's unit roundoff u bounds the relative error of one rounding (Higham, Accuracy and Stability of Numerical
Algorithms, 2002, section 2.1): 2^-8 for bf16, 2^-11 for TF32 and fp16. Gradients of this model in bf16 differ from fp32
by 2 to 3 u, with 4 blocks as with 24, and by more than 100 % without the causal mask or the scale of the scores; 16 u
lies between. fp16 is taken as bf16: without loss scaling small gradients lose their last bits. In fp32 only the order
of sums differs, some 1e-6, and 1e-4 still finds an fp32 product that ran in TF32. The loss is a mean over all tokens,
whose errors cancel: a tenth.
"""

import math
from collections.abc import Iterator, Sequence

from stepscope.axes import NEUTRAL, PRECISIONS
from stepscope.tables.schema import Group, number, text

OF_LOSS = 0.1

AGREEMENT = Group(
    "agreement with the ladder's first rung",
    (
        number("loss_difference", "ratio", "difference of the loss, over the first rung's"),
        number("gradient_norm_difference", "ratio", "difference of the gradients' 2-norm, over the first rung's"),
        number("gradient_difference", "ratio", "2-norm of the difference of sampled gradients, over the first rung's"),
        number("gradient_cosine", "", "cosine of the angle between the sampled gradients"),
        number("tolerance", "ratio", "what a difference of the gradients may be; a tenth of it for the loss"),
        text("agrees", "`True` if all differences are within the tolerance, else `False`; empty without a loss"),
    ),
)

AS_WRITTEN = "attention as written"  # the neutral value of a model of one's own, which brings its own attention
OPTIONS = ("precision", "attention", "compile", "optimizer", "checkpoint")
# What an option's value is called where it is what changed.
WORDS = {
    "precision": {"tf32": "TF32"},
    "attention": {
        "naive": "naive attention",
        "sdpa": "SDPA",
        "flex": "FlexAttention",
        "triton": "Triton attention",
    },
    "compile": {
        "none": "not compiled",
        "block": "blocks compiled",
        "graphs": "CUDA graphs",
        "model": "whole model compiled",
    },
    "optimizer": {"own": "own AdamW", "torch": "PyTorch's AdamW", "fused": "fused AdamW"},
}


def option(spec: dict, name: str) -> object:
    """The value of an option, neutral where the spec does not have it."""
    return spec.get(name, NEUTRAL.get(name))


def is_aside(spec: dict) -> bool:
    """Whether the cell stands beside the chain."""
    return bool(option(spec, "checkpoint")) or option(spec, "compile") == "model"


def group_of(entry: dict) -> tuple:
    """Cells of one ladder share this: hardware, size, context and batch."""
    return entry["cell"].split("/")[0], entry["size"], entry["spec"]["context"], entry["spec"]["batch"]


def chain(entries: list[dict]) -> list[dict]:
    """The cells of one ladder that are rungs, in their order."""
    return [entry for entry in entries if not is_aside(entry["spec"])]


def name(entry: dict, reference: dict | None) -> str:
    """What changed against the reference, as `CUDA graphs`; without one, how the cell runs, as `fp32, naive`."""
    spec = entry["spec"]
    if reference is None:
        parts = [_word(spec, "precision"), _word(spec, "attention").removesuffix(" attention")]
        return ", ".join([*parts, *(_word(spec, each) for each in OPTIONS[2:] if option(spec, each) != NEUTRAL[each])])
    changed = [each for each in OPTIONS if option(spec, each) != option(reference["spec"], each)]
    return " + ".join(_word(spec, each) for each in changed) or "nothing changed"


def _word(spec: dict, name: str) -> str:
    value = option(spec, name)
    if name == "attention" and value == NEUTRAL[name] and "model" in spec:
        return AS_WRITTEN
    if name == "checkpoint":
        return f"checkpoint every {value}" if value else "no checkpointing"
    return WORDS[name].get(value, str(value))


def counterpart(entry: dict, entries: list[dict]) -> dict | None:
    """What an aside is compared with: the cell with the same options that keeps all activations, or, for a whole model
    that is compiled, the one that compiles block by block. None if the ladder does not have it."""
    spec = entry["spec"]
    wanted = {each: option(spec, each) for each in OPTIONS}
    if wanted["checkpoint"]:
        wanted["checkpoint"] = 0
    else:
        wanted["compile"] = "block"
    alike = (each for each in entries if {key: option(each["spec"], key) for key in OPTIONS} == wanted)
    return next(alike, None)


def places(entries: list[dict]) -> Iterator[tuple[dict, int | None, dict | None]]:
    """Each cell of one ladder with its place in the chain (None for an aside), and what its name refers to: the cell
    before it in the chain, or an aside's counterpart."""
    rungs = chain(entries)
    for entry in entries:
        if is_aside(entry["spec"]):
            yield entry, None, counterpart(entry, entries)
        else:
            at = rungs.index(entry)
            yield entry, at, rungs[at - 1] if at else None


def compare(found: dict, first: dict, precisions: tuple[str, str]) -> dict:
    """AGREEMENT of a cell whose record's `ladder` part is `found`, against that of the first cell that has a loss.

    All are empty without a loss; `agrees` is False where a number that should be compared is missing or not finite.
    """
    if found.get("loss") is None or first.get("loss") is None:
        return dict.fromkeys(AGREEMENT.names)
    tolerance = max(PRECISIONS[precision].tolerance for precision in precisions)
    own, reference = found.get("gradient_sample") or [], first.get("gradient_sample") or []
    distance, cosine = differences(own, reference)
    loss = _relative(found["loss"], first["loss"])
    norm = _relative(found.get("gradient_norm"), first.get("gradient_norm"))
    within = [
        value is not None and value <= limit
        for value, limit in ((loss, OF_LOSS * tolerance), (norm, tolerance), (distance, tolerance))
    ]
    return dict(zip(AGREEMENT.names, (loss, norm, distance, cosine, tolerance, all(within)), strict=True))


def differences(own: Sequence[float], reference: Sequence[float]) -> tuple[float | None, float | None]:
    """(|own - reference| / |reference|, cosine of the angle between them), 2-norms; None where there is no number."""
    if len(own) != len(reference) or not all(_finite(value) for value in (*own, *reference)):
        return None, None
    lengths = [math.hypot(*values) for values in (own, reference)]
    if not lengths[1]:
        return (0.0 if not lengths[0] else None), None
    distance = math.dist(own, reference) / lengths[1]
    dot = math.fsum(a * b for a, b in zip(own, reference, strict=True))
    return distance, dot / (lengths[0] * lengths[1]) if lengths[0] else None


def _relative(own: object, reference: object) -> float | None:
    if not (_finite(own) and _finite(reference)):
        return None
    difference = abs(own - reference)
    return difference / abs(reference) if reference else (0.0 if not difference else None)


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
