"""Whether a rung computes the same step: its loss and gradients against those of the ladder's first rung.

A format's unit roundoff u bounds the relative error of one rounding (Higham, Accuracy and Stability of Numerical
Algorithms, 2002, section 2.1): 2^-8 for bf16, 2^-11 for TF32 and fp16. Gradients of this model in bf16 differ from fp32
by 2 to 3 u, with 4 blocks as with 24, and by more than 100 % without the causal mask or the scale of the scores; 16 u
lies between. fp16 is taken as bf16: without loss scaling small gradients lose their last bits. In fp32 only the order
of sums differs, some 1e-6, and 1e-4 still finds an fp32 product that ran in TF32. The loss is a mean over all tokens,
whose errors cancel: a tenth.
"""

import math
from collections.abc import Sequence

from stepscope.axes import PRECISIONS

OF_LOSS = 0.1

COLUMNS = ("loss_difference", "gradient_norm_difference", "gradient_difference", "gradient_cosine", "tolerance",
           "agrees")  # fmt: skip


def compare(found: dict, first: dict, precisions: tuple[str, str]) -> dict:
    """COLUMNS of a cell whose record's `ladder` part is `found`, against that of the first cell that has a loss.

    All are empty without a loss; `agrees` is False where a number that should be compared is missing or not finite.
    """
    if found.get("loss") is None or first.get("loss") is None:
        return dict.fromkeys(COLUMNS)
    tolerance = max(PRECISIONS[precision].tolerance for precision in precisions)
    own, reference = found.get("gradient_sample") or [], first.get("gradient_sample") or []
    distance, cosine = differences(own, reference)
    loss = _relative(found["loss"], first["loss"])
    norm = _relative(found.get("gradient_norm"), first.get("gradient_norm"))
    within = [
        value is not None and value <= limit
        for value, limit in ((loss, OF_LOSS * tolerance), (norm, tolerance), (distance, tolerance))
    ]
    return dict(zip(COLUMNS, (loss, norm, distance, cosine, tolerance, all(within)), strict=True))


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
