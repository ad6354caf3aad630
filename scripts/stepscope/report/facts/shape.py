"""What the closed form of the memory says of a place, for this project's model, as written or with
fused attention."""

import functools
from dataclasses import replace

from stepscope.formulas.footprint import Setup
from stepscope.formulas.footprint_peak import first_context_that_fails, peak
from stepscope.model.shape import ModelShape
from stepscope.report.facts.machine import SHAPE, Place
from stepscope.report.kit.data import Data
from stepscope.report.kit.quantity import Maybe, count
from stepscope.results.reserve import usable


def setup_of(data: Data, where: Place, attention: str = "naive") -> Setup | None:
    """A place as the closed form takes it; None of a model of one's own."""
    row = data.row("models", **where.where)
    if not row or row["reference"] or any(row[name] != row[name] for name in SHAPE):
        return None
    shape = ModelShape(**{name: int(row[name]) for name in SHAPE})
    return Setup(shape, where.batch, where.context, where.precision, attention, "own")


def longest_context(data: Data, where: Place, memory: Maybe, attention: str) -> Maybe:
    """The longest context whose step fits what is usable of a GPU's memory at the batch."""
    setup = setup_of(data, where, attention)
    return count(_longest(setup, int(usable(memory.value)))) if setup and memory else None


def largest_batch(data: Data, where: Place, memory: Maybe, attention: str) -> Maybe:
    """The largest batch whose step fits that at the place's context; 0 if none does."""
    setup = setup_of(data, where, attention)
    return count(_largest(setup, int(usable(memory.value)))) if setup and memory else None


@functools.cache
def _longest(setup: Setup, memory: int) -> int:
    return first_context_that_fails(setup, "step", memory) - 1


@functools.cache
def _largest(setup: Setup, memory: int) -> int:
    def fits(batch: int) -> bool:
        return peak(replace(setup, batch=batch), "step").bytes <= memory

    fitting, failing = 0, 1
    while fits(failing):
        fitting = failing
        failing = 2 * failing
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        if fits(middle):
            fitting = middle
        else:
            failing = middle
    return fitting
