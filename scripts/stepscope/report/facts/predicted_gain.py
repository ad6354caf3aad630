"""What a change of the ladder should bring by its mechanism alone: what its gain is held
against."""

from stepscope.model.about import TakesAway
from stepscope.report.facts.machine import Place
from stepscope.report.kit.quantity import Maybe, Quantity, joined, minus


def gain(takes_away: TakesAway, before, where: Place, work: Maybe) -> Maybe:
    """Times as fast by the mechanism alone: what it takes away goes, the rest of the step stays.

    takes_away: what the change's value says of itself. before: the Rung (facts.rungs) that the
    change is made on. work: the arithmetic with it.

    A precision: its FLOP at the other ceiling. Fused attention: the scores' bytes. Fused AdamW: the
    optimizer becomes its 28 bytes a parameter. CUDA graphs: the step becomes what the GPU takes for
    it, or what the optimizer, which they leave out, takes to launch. Where launches limit, the
    first two are shares of the step without the host.
    """
    saved = None
    whole = (before.host_free or before.gpu) if is_alone(takes_away, before) else before.step
    if takes_away == "arithmetic":
        saved = minus(before.arithmetic, work)
    elif takes_away == "scores":
        saved = where.scores
    elif takes_away == "optimizer":
        saved = minus(before.optimizer_alone, where.optimizer_fused)
    elif takes_away == "host" and before.gpu:
        known = [each for each in (before.gpu, before.optimizer) if each]
        saved = minus(before.step, max(known, key=lambda each: each.value))
    left = minus(whole, saved)
    if left is None or left.value <= 0:
        return None
    return Quantity(whole.value / left.value, "1", cells=joined(whole, saved))


def is_alone(takes_away: TakesAway, before) -> bool:
    """Whether a prediction is one of the GPU's own time: not of changes that take out the host or
    the optimizer."""
    is_of_gpu = takes_away not in ("host", "optimizer")
    return before.limits == "launches" and before.gpu is not None and is_of_gpu
