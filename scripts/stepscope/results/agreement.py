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
    one of gradients' norm and sampled entries, `loss_difference` the loss's; None where a number is
    missing or not finite, which is not the same."""
    with_loss = {name: one for name, one in computed.items() if one}
    if not with_loss:
        return {}
    first = next(iter(with_loss))
    found = {}
    for name, one in with_loss.items():
        both = [PRECISIONS[precisions[each]].tolerance for each in (name, first)]
        found[name] = one | _against(one, with_loss[first], None if None in both else max(both))
    return found


def _against(one: dict, first: dict, tolerance: float | None) -> dict:
    own, other = one["gradient_sample"], first["gradient_sample"]
    apart = (
        math.dist(own, other) / math.hypot(*other)
        if len(own) == len(other) and any(other)
        else math.nan
    )
    relative = [
        abs(one[key] - first[key]) / abs(first[key] or math.nan)
        for key in ("loss", "gradient_norm")
    ]
    difference = max(relative[1], apart)
    known = all(map(math.isfinite, (*relative, apart)))
    return {
        "difference": difference if known else None,
        "loss_difference": relative[0] if known else None,
        "tolerance": tolerance,
        "same": known
        and (tolerance is None or max(relative[0] / OF_LOSS, difference) <= tolerance),
    }
