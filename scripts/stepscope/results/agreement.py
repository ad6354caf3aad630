"""Whether variants of a ladder compute the same step: loss and gradients against those of the first
one. Standard library only.

A format's unit roundoff u bounds the relative error of one rounding (Higham, Accuracy and Stability
of Numerical Algorithms, 2002, section 2.1): 2^-8 for bf16, 2^-11 for TF32 and fp16. Gradients of
this model in bf16 differ from fp32 by 2 to 3 u, with 4 blocks as with 24, and by more than 100 %
without the causal mask or the scale of the scores; 16 u lies between. fp16 is taken as bf16:
without loss scaling small gradients lose their last bits. In fp32 only the order of sums differs,
some 1e-6, and 1e-4 still finds an fp32 product that ran in TF32. The loss is a mean over all
tokens, whose errors cancel: a tenth.
"""

import math

from stepscope.model.formats import PRECISIONS

OF_LOSS = 0.1


def compared(computed: dict[str, dict], precisions: dict[str, str]) -> dict[str, dict]:
    """What each variant computed (the record's `checks`), and `same`, differences, `tolerance`
    (None: nothing is judged) against the first that has a loss. `difference` is the larger relative
    one of gradients' norm and sampled entries, `loss_difference` the loss's; both are infinite
    where a number is missing or not finite, which is not the same."""
    with_loss = {name: one for name, one in computed.items() if one}
    if not with_loss:
        return {}
    first = next(iter(with_loss))
    tolerances = {name: PRECISIONS[precisions[name]].tolerance for name in with_loss}
    found = {}
    for name, one in with_loss.items():
        both = (tolerances[name], tolerances[first])
        larger = None if None in both else max(filter(None, both))
        found[name] = one | _against(one, with_loss[first], larger)
    return found


def _against(one: dict, first: dict, tolerance: float | None) -> dict:
    """How far a variant's loss and gradients are from the first one's, relative."""
    off = {key: _relative(one[key], first[key]) for key in ("loss", "gradient_norm")}
    apart = _distance(one["gradient_sample"], first["gradient_sample"])
    is_known = all(map(math.isfinite, (*off.values(), apart)))
    difference = max(off["gradient_norm"], apart) if is_known else math.inf
    loss_difference = off["loss"] if is_known else math.inf
    worst = max(loss_difference / OF_LOSS, difference)
    return {
        "difference": difference,
        "loss_difference": loss_difference,
        "tolerance": tolerance,
        "same": is_known and (tolerance is None or worst <= tolerance),
    }


def _relative(value: float, reference: float) -> float:
    """NaN beside a reference of 0."""
    return abs(value - reference) / abs(reference or math.nan)


def _distance(own: list[float], reference: list[float]) -> float:
    """Of sampled gradients, as a share of the reference's length; NaN where they are not those of
    one model, or all are 0."""
    if len(own) != len(reference) or not any(reference):
        return math.nan
    return math.dist(own, reference) / math.hypot(*reference)
