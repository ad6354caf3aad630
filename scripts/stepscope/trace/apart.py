"""A step on several devices taken apart, for every rank: what computes, what waits for whom, what
is sent, and what does nothing. Pure functions of intervals; times are in seconds.

A rank's step is a window with kernels that compute and collectives. Of one device's step, without
communication, only the kernels are known. The parts add up to the window:

    computing alone + slowed + apart + extra + gone + at once + waiting + transfer + idle

The first six are the time in which any kernel computes; waiting, transfer and idle the rest of it.
"""

import functools
from dataclasses import astuple, dataclass, field
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
    """Seconds of a rank's step. All but the last four add up to its length.

    alone: in which one device's step computes. slowed: by how much the same kernels take longer
    that run beside a collective; apart: those that do not. extra, gone: kernels that only this
    step, or only one device's, has (gone is at most 0). at_once: what is counted twice of kernels
    that run at the same time, beyond one device's (usually at most 0). waiting, transfer: of
    collectives, where nothing computes. idle: neither. beside: what kernels spent beside
    collectives. waited, transferred: of collectives, covered or not; waited_by_others: of all other
    ranks, in those that this one was the last to start.
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
    waited_by_others: float

    @property
    def total(self) -> float:
        """The length of the step."""
        return sum(astuple(self)[:-4])


def take_apart(steps: list[Step], alone: list[Step]) -> list[Parts]:
    """The parts of one step, by rank. steps: the same step of every rank; alone: a step of one
    device of every rank."""
    waits = collectives.with_waits(_collectives(steps))
    blame = collectives.waited_for(waits)
    # what no other rank has waits for none
    latest = waits["until"].fillna(waits["start"])
    return [
        _parts(step, latest[waits["rank"] == rank].to_numpy(), before, blame.get(rank, 0.0))
        for rank, (step, before) in enumerate(zip(steps, alone, strict=True))
    ]


def _collectives(steps: list[Step]) -> pd.DataFrame:
    """Of all ranks, as stepscope.trace.collectives wants them."""
    parts = [
        pd.DataFrame(step.collectives, columns=Span._fields).assign(rank=rank)
        for rank, step in enumerate(steps)
    ]
    found = pd.concat(parts, ignore_index=True)
    types = {
        "rank": int,
        "start": float,
        "end": float,
    }
    return found.astype(types).assign(group="", sequence=-1)


def _parts(
    step: Step,
    latest: Times,
    alone: Step,
    waited_by_others: float,
) -> Parts:
    """latest: when the last rank has started each collective of the step, by this one's clock."""
    starts, ends = _times(step.collectives, step)
    moments = np.clip(latest, starts, ends)
    computing = _times(step.kernels, step)
    window = (np.array([step.start]), np.array([step.end]))
    found = collectives.parts(window, computing, (starts, moments), (moments, ends))
    own, before = _seconds(step), _seconds(alone)
    both = matched(step, alone)
    longer = both["own"] - both["before"]
    is_beside = both["beside"] > 0
    busy_alone = busy_time(alone)
    at_once = (found["compute"] - own.sum()) - (busy_alone - before.sum())
    return Parts(
        alone=busy_alone,
        slowed=longer[is_beside].sum(),
        apart=longer[~is_beside].sum(),
        extra=own.sum() - both["own"].sum(),
        gone=both["before"].sum() - before.sum(),
        at_once=at_once,
        waiting=found["waiting"],
        transfer=found["transfer"],
        idle=found["idle"],
        beside=_beside(step).sum(),
        waited=(moments - starts).sum(),
        transferred=(ends - moments).sum(),
        waited_by_others=waited_by_others,
    )


def busy_time(step: Step) -> float:
    """Seconds in which any kernel computes."""
    starts, ends = union(*_times(step.kernels, step))
    return float((ends - starts).sum())


def _times(spans: list[Span], step: Step) -> tuple[Times, Times]:
    """(starts, ends) of what of spans lies in the step's window."""
    starts, ends = np.array([(span.start, span.end) for span in spans]).reshape(-1, 2).T
    return np.clip(starts, step.start, step.end), np.clip(ends, step.start, step.end)


def _seconds(step: Step) -> Times:
    """Of each kernel."""
    starts, ends = _times(step.kernels, step)
    return ends - starts


def _beside(step: Step) -> Times:
    """Seconds of each kernel that lie beside the step's collectives."""
    sent = _times(step.collectives, step)
    before_start, before_end = (covered(*sent, points) for points in _times(step.kernels, step))
    return before_end - before_start


def matched(step: Step, alone: Step) -> pd.DataFrame:
    """Kernels that both steps have: name; own, before: their seconds in either; beside: those of
    `step` that lie beside its collectives."""
    here, there = aligned(
        tuple(span.name for span in step.kernels), tuple(span.name for span in alone.kernels)
    )
    return pd.DataFrame(
        {
            "name": [step.kernels[at].name for at in here],
            "own": _seconds(step)[here],
            "before": _seconds(alone)[there],
            "beside": _beside(step)[here],
        }
    )


@functools.lru_cache(maxsize=64)
def aligned(
    one: tuple[str, ...], other: tuple[str, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(positions in one, positions in the other) of a longest common subsequence of two sequences
    of names.

    A table of its lengths is filled, a row at a time (Wagner and Fischer 1974): a row is the
    running maximum of what its upper neighbours allow.
    """
    _, codes = np.unique([*one, *other], return_inverse=True)
    rows, columns = np.split(codes, [len(one)])
    best = np.zeros((len(rows) + 1, len(columns) + 1), dtype=np.int32)
    for row, name in enumerate(rows, start=1):
        allowed = np.maximum(best[row - 1, 1:], best[row - 1, :-1] + (columns == name))
        np.maximum.accumulate(allowed, out=best[row, 1:])
    pairs = []
    row, column = len(rows), len(columns)
    while row and column:
        if best[row, column] == best[row - 1, column]:
            row -= 1
        elif best[row, column] == best[row, column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            pairs.append((row, column))
    found = np.array(pairs[::-1], dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
