"""What the closed form says of the memory of a place, for this project's model, as written or with
fused attention."""

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stepscope.formulas.footprint import Setup
from stepscope.formulas.footprint_peak import last_that, peak
from stepscope.report.facts.machine import Place, machine
from stepscope.report.kit.quantity import Maybe, count
from stepscope.report.kit.reserve import usable


def longest_context(where: Place, **options: str) -> Maybe:
    """The longest context whose step, plain but for the options, fits what is usable of a GPU's
    memory at the batch."""
    return _most("context", where, options)


def largest_batch(where: Place, **options: str) -> Maybe:
    """The largest batch whose step fits that at the place's context; 0 if none does."""
    return _most("batch", where, options)


def _most(field: str, where: Place, options: Mapping[str, str]) -> Maybe:
    """None without a GPU, of a model of one's own, and of what the closed form does not know."""
    own = machine(where.data)
    if not own.is_gpu or own.memory is None or where.shape is None:
        return None
    given: dict[str, Any] = {"precision": where.precision, **options}
    given["checkpoint"] = int(given.get("checkpoint", 0))
    setup = Setup(where.shape, where.batch, where.context, **given)
    known = setup.is_known
    return count(_largest(field, setup, int(usable(own.memory.value)))) if known else None


@functools.cache
def _largest(field: str, setup: Setup, memory: int) -> int:
    def fits(number: int) -> bool:
        changed: dict[str, Any] = {field: number}
        return peak(replace(setup, **changed), "step").bytes <= memory

    return last_that(fits)
