"""Whether variants of a ladder compute the same step: loss and gradients against those of the first
one.

A format's unit roundoff u bounds the relative error of one rounding (Higham, Accuracy and Stability
of Numerical Algorithms, 2002, section 2.1): 2^-8 for bf16, 2^-11 for TF32 and fp16. Gradients of
this model in bf16 differ from fp32 by 2 to 3 u, with 4 blocks as with 24, and by more than 100 %
without the causal mask or the scale of the scores; 16 u lies between. fp16 is taken as bf16:
without loss scaling small gradients lose their last bits. In fp32 only the order of sums differs,
some 1e-6, and 1e-4 still finds an fp32 product that ran in TF32. The loss is a mean over all
tokens, whose errors cancel: a tenth.
"""

import math
from collections.abc import Iterator

from stepscope.axes import is_step
from stepscope.model.formats import PRECISIONS

from .cells import MeasuredCell, precision_of

OF_LOSS = 0.1


def values(cells: list[MeasuredCell]) -> Iterator[dict]:
    """How far each variant that has a loss computes another one than the first that has one, and
    other gradients, as values of a record, with `cell`.

    Of steps of one's own it is the loss alone, the largest difference of a step: their optimizers
    may differ, so that nothing is judged.
    """
    for cell in cells:
        checks = cell.summary.get("checks", {})
        names = [name for name in cell.variants if checks.get(name)]
        for name in names:
            own, first = checks[name], checks[names[0]]
            if is_step(cell.spec):
                pairs = zip(own["losses"], first["losses"], strict=False)
                off = [_distance([loss], [of_first]) for loss, of_first in pairs]
                found = {"loss_difference": max(off, default=None)}
            else:
                found = compared(own, first) | {"tolerance": tolerance(cell, name, names[0])}
            place = {"cell": cell.name, "variant": name, "mode": "step"}
            for quantity, value in found.items():
                if value is not None:
                    yield place | {"quantity": quantity, "value": value}


def tolerance(cell: MeasuredCell, *variants: str) -> float | None:
    """Up to which gradients of these differ by rounding; None where nothing is judged."""
    precisions = [precision_of(cell, name) for name in variants]
    if "float16" in cell.built_in:  # or bfloat16: it rounds as under autocast, whatever it runs in
        precisions = ["bf16"]
    each = [PRECISIONS[name].tolerance for name in precisions]
    return None if None in each else max(filter(None, each))


def compared(one: dict, first: dict) -> dict[str, float | None]:
    """How far what a variant computed (the record's `checks`) is from the first one's, relative.

    `difference` is the larger one of gradients' norm and sampled entries, `loss_difference` the
    loss's; both are infinite where a number is missing or not finite.
    """
    loss, norm = (_distance([one[key]], [first[key]]) for key in ("loss", "gradient_norm"))
    sample = _distance(one["gradient_sample"], first["gradient_sample"])
    if not math.isfinite(loss + norm + sample):
        return {"difference": math.inf, "loss_difference": math.inf}
    return {"difference": max(norm, sample), "loss_difference": loss}


def _distance(own: list[float], reference: list[float]) -> float:
    """Of numbers, as a share of the reference's length; NaN where they are not as many, or the
    reference's are all 0."""
    if len(own) != len(reference) or not any(reference):
        return math.nan
    return math.dist(own, reference) / math.hypot(*reference)
