"""A step on several devices taken apart, for every rank: what computes, what waits for whom, what
is sent, and what does nothing. Pure functions of intervals; times are in seconds.

A rank's step is a window with kernels that compute and collectives. Of one device's step, without
communication, only the kernels are known. The parts add up to the window:

    computing alone + slowed + apart + extra + gone + at once + waiting + transfer + idle

The first six are the time in which any kernel computes; waiting, transfer and idle the rest of it.
"""

import functools
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.trace import collectives
from stepscope.trace.nesting import covered, union

Times = NDArray[np.float64]


class Span(NamedTuple):
    """A kernel, or a collective, from its start to its end."""

    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Step:
    """What a rank did between `start` and `end`, by its own clock; spans in the order of their
    starts."""

    start: float
    end: float
    kernels: list[Span] = field(default_factory=list)
    collectives: list[Span] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Seconds of a rank's step. All but the last three add up to its length.

    alone: in which one device's step computes. slowed: by how much the same kernels take longer
    that run beside a collective; apart: those that do not. extra, gone: kernels that only this
    step, or only one device's, has (gone is at most 0). at_once: what is counted twice of kernels
    that run at the same time, beyond one device's (usually at most 0). waiting, transfer: of
    collectives, where nothing computes. idle: neither. beside: what kernels spent beside
    collectives. waited_for, transferred: of collectives, whether covered or not.
    """

    alone: float
    slowed: float
    apart: float
    extra: float
    gone: float
    at_once: float
    waiting: float
    transfer: float
    idle: float
    beside: float
    waited: float
    transferred: float

    @property
    def total(self) -> float:
        """The length of the step."""
        return sum(getattr(self, name) for name in ADDING_UP)


ADDING_UP = (
    "alone",
    "slowed",
    "apart",
    "extra",
    "gone",
    "at_once",
    "waiting",
    "transfer",
    "idle",
)


def take_apart(steps: list[Step], alone: list[Step]) -> list[Parts]:
    """The parts of one step, by rank.

    steps: the same step of every rank; alone: a step of one device of every rank. Raises ValueError
    where the ranks ran different collectives.
    """
    table, instance, offsets = _same_clock(steps)
    until = collectives.last_starts(table, instance)
    if len(steps) == 1:
        until = table["start"].to_numpy()
    result = []
    for rank, (step, before) in enumerate(zip(steps, alone, strict=True)):
        own = (table["rank"] == rank).to_numpy()
        result.append(_parts(step, until[own] - offsets[rank], before))
    return result


def clock_offsets(steps: list[Step]) -> list[float]:
    """What to add to each rank's times for the first one's clock."""
    return _same_clock(steps)[2]


def waits_for(steps: list[Step]) -> list[float]:
    """Seconds that all other ranks together spend in collectives which the rank was the last to
    start, covered or not, by rank."""
    table, instance, _ = _same_clock(steps)
    found = collectives.waited_for(table, instance)
    return [found.get(rank, 0.0) for rank in range(len(steps))]


def _same_clock(steps: list[Step]) -> tuple[pd.DataFrame, np.ndarray, list[float]]:
    """(all collectives by the first rank's clock, the instance of each, each rank's offset)."""
    names = [[span.name for span in step.collectives] for step in steps]
    for rank, own in enumerate(names):
        if own != names[0]:
            raise ValueError(f"rank {rank} ran other collectives than rank 0 in the same step")
    parts = [
        pd.DataFrame(step.collectives, columns=list(Span._fields)).assign(rank=rank)
        for rank, step in enumerate(steps)
    ]
    table = pd.concat(parts, ignore_index=True).assign(group="", sequence=-1)
    table = table.astype({"start": float, "end": float})
    instance = collectives.instances(table)
    found = collectives.clock_offsets(table, instance)
    offsets = [found.get(rank, 0.0) for rank in range(len(steps))]
    shift = table["rank"].map(dict(enumerate(offsets)))
    moved = table.assign(start=table["start"] + shift, end=table["end"] + shift)
    return moved, instance, offsets


def _parts(step: Step, until: Times, alone: Step) -> Parts:
    """until: when the last rank has started each collective of the step, by this one's clock."""
    start, end = _cut(step.kernels, step)
    began, ended = _cut(step.collectives, step)
    moment = np.clip(until, began, ended)
    window = np.array([step.start]), np.array([step.end])
    parts = collectives.parts(window, (start, end), (began, moment), (moment, ended))
    beside = np.diff(covered(began, ended, np.array([start, end])), axis=0)[0]
    start_alone, end_alone = _cut(alone.kernels, alone)
    own = end - start
    before = end_alone - start_alone
    busy_alone = busy_time(alone)
    at_once = (parts["compute"] - own.sum()) - (busy_alone - before.sum())
    names = tuple(span.name for span in step.kernels)
    names_alone = tuple(span.name for span in alone.kernels)
    return Parts(
        alone=busy_alone,
        **_compared(names, names_alone, own, before, beside > 0),
        at_once=float(at_once),
        waiting=parts["waiting"],
        transfer=parts["transfer"],
        idle=parts["idle"],
        beside=float(beside.sum()),
        waited=float((moment - began).sum()),
        transferred=float((ended - moment).sum()),
    )


def busy_time(step: Step) -> float:
    """Seconds in which any kernel computes."""
    start, end = union(*_cut(step.kernels, step))
    return float((end - start).sum())


def _cut(spans: list[Span], step: Step) -> tuple[Times, Times]:
    """(starts, ends) of what of each span lies in the step's window."""
    start, end = (
        np.clip([getattr(span, key) for span in spans], step.start, step.end).astype(float)
        for key in ("start", "end")
    )
    return start, end


def _compared(
    names: tuple[str, ...],
    names_alone: tuple[str, ...],
    own: Times,
    before: Times,
    is_beside: NDArray[np.bool_],
) -> dict[str, float]:
    """slowed, apart, extra and gone of Parts, by the kernels that both steps have."""
    here, there = aligned(names, names_alone)
    longer = own[here] - before[there]
    beside = is_beside[here]
    return {
        "slowed": float(longer[beside].sum()),
        "apart": float(longer[~beside].sum()),
        "extra": float(own.sum() - own[here].sum()),
        "gone": float(before[there].sum() - before.sum()),
    }


@functools.lru_cache(maxsize=64)
def aligned(
    one: tuple[str, ...], other: tuple[str, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(positions in one, positions in the other) of a longest common subsequence of two sequences
    of names.

    Ends that agree are taken as they are; between them a table of its lengths is filled, a row at a
    time (Wagner and Fischer 1974): a row is the running maximum of what its upper neighbours allow.
    """
    start = _agreeing(one, other)
    end = _agreeing(one[start:][::-1], other[start:][::-1])
    codes = {name: code for code, name in enumerate(dict.fromkeys((*one, *other)))}
    rows, columns = (
        np.array([codes[name] for name in names[start : len(names) - end]], dtype=np.int64)
        for names in (one, other)
    )
    best = np.zeros((len(rows) + 1, len(columns) + 1), dtype=np.int32)
    for row, name in enumerate(rows, start=1):
        allowed = np.maximum(best[row - 1, 1:], best[row - 1, :-1] + (columns == name))
        np.maximum.accumulate(allowed, out=best[row, 1:])
    pairs = []
    row = len(rows)
    column = len(columns)
    while row and column:
        if best[row, column] == best[row - 1, column]:
            row -= 1
        elif best[row, column] == best[row, column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            pairs.append((start + row, start + column))
    head = [(at, at) for at in range(start)]
    tail = [(len(one) - at, len(other) - at) for at in range(end, 0, -1)]
    found = np.array([*head, *pairs[::-1], *tail], dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _agreeing(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many names agree from the start on."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
