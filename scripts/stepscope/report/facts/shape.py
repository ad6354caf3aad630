"""What the closed form of the memory says of a place, for this project's model, as written or with
fused attention."""

import functools
from dataclasses import replace

from stepscope.formulas.footprint import Setup
from stepscope.formulas.footprint_peak import first_context_that_fails, peak
from stepscope.model.shape import ModelShape
from stepscope.report.facts.machine import SHAPE, Place
from stepscope.report.kit.data import Data, of_series, once
from stepscope.report.kit.quantity import Maybe, Quantity, count, over, scaled

RESERVE = 0.15  # where it was not measured


def setup_of(data: Data, where: Place, attention: str = "naive") -> Setup | None:
    """A place as the closed form takes it; None of a model of one's own."""
    row = data.row("models", **where.where)
    if not row or row["reference"] or any(row[name] != row[name] for name in SHAPE):
        return None
    shape = ModelShape(**{name: int(row[name]) for name in SHAPE})
    return Setup(shape, where.batch, where.context, where.precision, attention, "own")


def longest_context(data: Data, where: Place, memory: Maybe, attention: str) -> Maybe:
    """The longest context whose step fits `memory` at the place's batch."""
    setup, room = setup_of(data, where, attention), room_in(data, memory)
    return count(_longest(setup, int(room.value))) if setup and room else None


def largest_batch(data: Data, where: Place, memory: Maybe, attention: str) -> Maybe:
    """The largest batch whose step fits `memory` at the place's context; 0 if none does."""
    setup, room = setup_of(data, where, attention), room_in(data, memory)
    return count(_largest(setup, int(room.value))) if setup and room else None


def room_in(data: Data, memory: Maybe) -> Maybe:
    """What tensors may ask for: the allocator reserves more, so much at most as `reserve` says."""
    return scaled(memory, 1 / (1 + reserve(data).value))


@once
def reserve(data: Data) -> Quantity:
    """What plain steps reserved beyond what their tensors asked for, at most, of the latter."""
    asked = _peaks(data, "peak_asked")
    beyond = [over(each, asked.get(cell)) for cell, each in _peaks(data, "peak_reserved").items()]
    most = max(filter(None, beyond), key=lambda each: each.value, default=None)
    if most is None:
        return Quantity(RESERVE, "share")
    return Quantity(most.value - 1, "share", cells=most.cells)


def _peaks(data: Data, quantity: str) -> dict[str, Maybe]:
    rows = data.series(study="memory", quantity=quantity, options="", mode="step")
    return {row["cell"]: of_series(row) for row in rows}


@functools.cache
def _longest(setup: Setup, memory: int) -> int:
    return first_context_that_fails(setup, "step", memory) - 1


@functools.cache
def _largest(setup: Setup, memory: int) -> int:
    low, high = 0, 1
    while peak(replace(setup, batch=high), "step").bytes <= memory:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = peak(replace(setup, batch=middle), "step").bytes <= memory
        low, high = (middle, high) if fits else (low, middle)
    return low
