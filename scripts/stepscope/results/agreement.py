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
from stepscope.results.cells import MeasuredCell, precision_of

OF_LOSS = 0.1


def values(cells: list[MeasuredCell]) -> Iterator[dict]:
    """How far each rung of a ladder computes another loss and other gradients than the first, as
    values of a record, with `cell`; inf: not a number."""
    for cell in cells:
        for name, found in of_rungs(cell).items():
            place = {"cell": cell.name, "variant": name, "mode": "step"}
            for quantity, value in found.items():
                if quantity != "same":
                    yield place | {"quantity": quantity, "value": value}


def differing(cells: list[MeasuredCell]) -> Iterator[str]:
    """A line for each rung of a ladder that computes another loss or other gradients than the
    first."""
    for cell in cells:
        for name, found in of_rungs(cell).items():
            if not found["same"]:
                said = "computes another loss or other gradients than the first variant"
                yield f"{cell.name}: {name} {said}"


def of_rungs(cell: MeasuredCell) -> dict[str, dict]:
    """What each rung computed that has a loss, compared with the first that has one."""
    checks = cell.summary.get("checks", {})
    rungs = [rung["name"] for rung in cell.spec.get("variants", [])]
    computed = {name: checks[name] for name in rungs if checks.get(name)}
    if not computed:
        return {}
    if is_step(cell.spec):
        return _losses_compared(computed, checks.get(rungs[0]) or {})
    precisions = {name: precision_of(cell, name) for name in computed}
    if "float16" in cell.built_in:  # or bfloat16: it rounds as under autocast, whatever it runs in
        precisions = dict.fromkeys(computed, "bf16")
    return compared(computed, precisions)


def _losses_compared(computed: dict[str, dict], first: dict) -> dict[str, dict]:
    """Of steps of one's own how far the losses of their first steps are from those of `first`, the
    first variant; nothing is judged, since their optimizers may differ. {} where it tells none."""
    found = {}
    for name, one in computed.items():
        pairs = zip(one["losses"], first.get("losses", []), strict=False)
        off = [_distance([own], [reference]) for own, reference in pairs]
        if off:
            found[name] = {"loss_difference": max(off), "same": True}
    return found


def compared(computed: dict[str, dict], precisions: dict[str, str]) -> dict[str, dict]:
    """Differences of what each variant computed (the record's `checks`) from the first one's,
    `tolerance` (None: nothing is judged) and `same`. `difference` is the larger relative one of
    gradients' norm and sampled entries, `loss_difference` the loss's; both are infinite where a
    number is missing or not finite, which is not the same."""
    first = next(iter(computed), "")
    found = {}
    for name, one in computed.items():
        both = [PRECISIONS[precisions[each]].tolerance for each in (name, first)]
        larger = None if None in both else max(filter(None, both))
        found[name] = _against(one, computed[first], larger)
    return found


def _against(one: dict, first: dict, tolerance: float | None) -> dict:
    """How far a variant's loss and gradients are from the first one's, relative."""
    loss, norm = (_distance([one[key]], [first[key]]) for key in ("loss", "gradient_norm"))
    sample = _distance(one["gradient_sample"], first["gradient_sample"])
    is_known = math.isfinite(loss + norm + sample)
    difference = max(norm, sample)
    if not is_known:
        loss = difference = math.inf
    worst = max(loss / OF_LOSS, difference)
    same = is_known and (tolerance is None or worst <= tolerance)
    found = {"difference": difference, "loss_difference": loss, "same": same}
    return found if tolerance is None else found | {"tolerance": tolerance}


def _distance(own: list[float], reference: list[float]) -> float:
    """Of numbers, as a share of the reference's length; NaN where they are not as many, or the
    reference's are all 0."""
    if len(own) != len(reference) or not any(reference):
        return math.nan
    return math.dist(own, reference) / math.hypot(*reference)
