"""What the closed form of the memory says of a place, for this project's model, as written or with
fused attention."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace

from stepscope.formulas.footprint import Setup
from stepscope.formulas.footprint_peak import first_context_that_fails, peak
from stepscope.report.facts.machine import Place, machine
from stepscope.report.kit.quantity import Maybe, count
from stepscope.report.kit.reserve import usable


def longest_context(where: Place, **options: str) -> Maybe:
    """The longest context whose step, plain but for the options, fits what is usable of a GPU's
    memory at the batch."""
    return _most(_longest, where, options)


def largest_batch(where: Place, **options: str) -> Maybe:
    """The largest batch whose step fits that at the place's context; 0 if none does."""
    return _most(_largest, where, options)


def _most(fitting: Callable[[Setup, int], int], where: Place, options: Mapping[str, str]) -> Maybe:
    """None without a GPU, of a model of one's own, and of what the closed form does not know."""
    own = machine(where.data)
    if not own.is_gpu or own.memory is None or where.shape is None:
        return None
    given = {"precision": where.precision, **options}
    given["checkpoint"] = int(given.get("checkpoint", 0))
    setup = Setup(where.shape, where.batch, where.context, **given)
    return count(fitting(setup, int(usable(own.memory.value)))) if setup.is_known else None


@functools.cache
def _longest(setup: Setup, memory: int) -> int:
    return first_context_that_fails(setup, "step", memory) - 1


@functools.cache
def _largest(setup: Setup, memory: int) -> int:
    def fits(batch: int) -> bool:
        return peak(replace(setup, batch=batch), "step").bytes <= memory

    fitting, failing = 0, 1
    while fits(failing):
        fitting, failing = failing, 2 * failing
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        if fits(middle):
            fitting = middle
        else:
            failing = middle
    return fitting
