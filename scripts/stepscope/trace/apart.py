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

from . import collectives
from .nesting import arrays, covered, union

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


def take_apart(steps: list[Step], alone: list[Step]) -> list[dict[str, float]]:
    """Seconds of one step's parts, by rank. steps: the same step of every rank; alone: a step of
    one device of every rank. All but the last four add up to the step's length.

    alone: in which one device's step computes. slowed: by how much the same kernels take longer
    that run beside a collective; apart: those that do not. extra, gone: kernels that only this
    step, or only one device's, has (gone is at most 0). at_once: what is counted twice of kernels
    that run at the same time, beyond one device's (usually at most 0). waiting, transfer: of
    collectives, where nothing computes. idle: neither. beside: what kernels spent beside
    collectives. waited, transferred: of collectives, covered or not; waited_by_others: of all other
    ranks, in those that this one was the last to start.
    """
    sent = [_table(step.collectives).assign(rank=rank) for rank, step in enumerate(steps)]
    every = pd.concat(sent, ignore_index=True).astype({"rank": int})
    waits = collectives.with_waits(every.assign(group="", sequence=-1))
    blame = collectives.waited_for(waits)
    # what no other rank has waits for none
    latest = waits["until"].fillna(waits["start"])
    return [
        _parts(step, latest[waits["rank"] == rank].to_numpy(), before)
        | {"waited_by_others": blame.get(rank, 0.0)}
        for rank, (step, before) in enumerate(zip(steps, alone, strict=True))
    ]


def _table(spans: list[Span]) -> pd.DataFrame:
    return pd.DataFrame(spans, columns=Span._fields).astype({"start": float, "end": float})


def _parts(step: Step, latest: Times, alone: Step) -> dict[str, float]:
    """latest: when the last rank has started each collective of the step, by this one's clock."""
    own, before, both = _kernels(step), _kernels(alone), matched(step, alone)
    starts, ends = _within(step.collectives, step)
    moments = np.clip(latest, starts, ends)
    window = (np.array([step.start]), np.array([step.end]))
    computing = arrays(own, "start", "end")
    found = collectives.parts(window, computing, (starts, moments), (moments, ends))
    longer = both["own"] - both["before"]
    is_beside = both["beside"] > 0
    busy_alone = busy_time(alone)
    seconds, seconds_alone = own["seconds"].sum(), before["seconds"].sum()
    return {
        "alone": busy_alone,
        "slowed": longer[is_beside].sum(),
        "apart": longer[~is_beside].sum(),
        "extra": seconds - both["own"].sum(),
        "gone": both["before"].sum() - seconds_alone,
        "at_once": found["compute"] - seconds - (busy_alone - seconds_alone),
        "waiting": found["waiting"],
        "transfer": found["transfer"],
        "idle": found["idle"],
        "beside": own["beside"].sum(),
        "waited": (moments - starts).sum(),
        "transferred": (ends - moments).sum(),
    }


def busy_time(step: Step) -> float:
    """Seconds in which any kernel computes."""
    starts, ends = union(*_within(step.kernels, step))
    return float((ends - starts).sum())


def _within(spans: list[Span], step: Step) -> tuple[Times, Times]:
    """(starts, ends) of what of spans lies in the step's window."""
    starts, ends = arrays(_table(spans), "start", "end")
    return starts.clip(step.start, step.end), ends.clip(step.start, step.end)


def _kernels(step: Step) -> pd.DataFrame:
    """What of a step's kernels lies in its window: name, start, end, seconds, and those of them
    that lie beside its collectives."""
    starts, ends = _within(step.kernels, step)
    sent = _within(step.collectives, step)
    return _table(step.kernels).assign(
        start=starts,
        end=ends,
        seconds=ends - starts,
        beside=covered(*sent, ends) - covered(*sent, starts),
    )


def matched(step: Step, alone: Step) -> pd.DataFrame:
    """Kernels that both steps have: name; own, before: their seconds in either; beside: those of
    `step` that lie beside its collectives."""
    own, before = _kernels(step), _kernels(alone)
    here, there = aligned(tuple(own["name"]), tuple(before["name"]))
    own = own.iloc[here].rename(columns={"seconds": "own"})
    return own.assign(before=before["seconds"].to_numpy()[there])


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
