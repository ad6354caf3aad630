"""A step on several devices taken apart, for every rank: what computes, what waits for whom, what
is sent, and what does nothing. Pure functions of intervals; times are in seconds.

A rank's step is a window with kernels that compute and collectives. Of one device's step, without
communication, only the kernels are known. The parts add up to the window:

    computing alone + slowed + apart + extra + gone + at once + waiting + transfer + idle

The first six are the time in which any kernel computes; waiting, transfer and idle the rest of it.

It runs where steps are measured, and needs no more than NumPy there; collectives.py says the same
of strangers' ranks, whose groups differ, with tables.
"""

import functools
import statistics
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    offsets = clock_offsets(steps)
    latest = last_starts(steps, offsets)
    return [
        _parts(step, list(latest - offset), before)
        for step, offset, before in zip(steps, offsets, alone, strict=True)
    ]


def clock_offsets(steps: list[Step]) -> list[float]:
    """What to add to each rank's times for the first one's clock: a collective ends at about the
    same moment on all ranks, so that it is the median difference of the ends of equal ones."""
    names = [[span.name for span in step.collectives] for step in steps]
    for rank, own in enumerate(names):
        if own != names[0]:
            raise ValueError(f"rank {rank} ran other collectives than rank 0 in the same step")
    return [
        statistics.median(
            first.end - own.end
            for first, own in zip(steps[0].collectives, step.collectives, strict=True)
        )
        if names[0]
        else 0.0
        for step in steps
    ]


def last_starts(steps: list[Step], offsets: list[float]) -> Times:
    """When the last rank has started each collective, by the first one's clock."""
    starts = [
        [span.start + offset for span in step.collectives]
        for step, offset in zip(steps, offsets, strict=True)
    ]
    return np.max(np.array(starts, dtype=float), axis=0)


def waits_for(steps: list[Step]) -> list[float]:
    """Seconds that all other ranks together spend in collectives which the rank was the last to
    start, covered or not, by rank."""
    offsets = clock_offsets(steps)
    found = [0.0] * len(steps)
    for same in zip(*(step.collectives for step in steps), strict=True):
        starts = [span.start + offset for span, offset in zip(same, offsets, strict=True)]
        last = max(range(len(starts)), key=starts.__getitem__)
        found[last] += sum(starts[last] - start for start in starts)
    return found


def _parts(step: Step, latest: list[float], alone: Step) -> Parts:
    """latest: when the last rank has started each collective of the step, by this one's clock."""
    kernels = [_cut(span, step) for span in step.kernels]
    references = [_cut(span, alone) for span in alone.kernels]
    moments = [
        min(max(last, span.start), span.end)
        for last, span in zip(latest, step.collectives, strict=True)
    ]
    waits = [
        _cut(Span(span.name, span.start, moment), step)
        for span, moment in zip(step.collectives, moments, strict=True)
    ]
    transfers = [
        _cut(Span(span.name, moment, span.end), step)
        for span, moment in zip(step.collectives, moments, strict=True)
    ]
    length, (computing, waiting, moving) = _levels(step, kernels, waits, transfers)
    free = computing == 0
    beside = _beside(kernels, [*waits, *transfers])
    compared = _compared(kernels, references, beside)
    own, before = _lengths(kernels), _lengths(references)
    busy = float(length[~free].sum())
    busy_alone = busy_time(alone)
    return Parts(
        alone=busy_alone,
        **compared,
        at_once=(busy - float(own.sum())) - (busy_alone - float(before.sum())),
        waiting=float(length[free & (waiting > 0) & (moving == 0)].sum()),
        transfer=float(length[free & (moving > 0)].sum()),
        idle=float(length[free & (waiting == 0) & (moving == 0)].sum()),
        beside=float(beside.sum()),
        waited=float(_lengths(waits).sum()),
        transferred=float(_lengths(transfers).sum()),
    )


def busy_time(step: Step) -> float:
    """Seconds in which any kernel computes."""
    length, (computing,) = _levels(step, [_cut(span, step) for span in step.kernels])
    return float(length[computing > 0].sum())


def _cut(span: Span, step: Step) -> Span:
    """What of a span lies in the step's window."""
    start, end = (min(max(time, step.start), step.end) for time in (span.start, span.end))
    return Span(span.name, start, end)


def _lengths(spans: list[Span]) -> Times:
    return np.array([span.end - span.start for span in spans], dtype=float)


def _levels(step: Step, *kinds: list[Span]) -> tuple[Times, list[NDArray[np.int64]]]:
    """(lengths of the pieces into which all edges cut the window, for each kind how many spans
    cover each piece)."""
    edges = [time for spans in kinds for span in spans for time in (span.start, span.end)]
    points = np.unique(np.array([step.start, *edges, step.end], dtype=float))
    levels = []
    for spans in kinds:
        starts = np.sort([span.start for span in spans])
        ends = np.sort([span.end for span in spans])
        begun = np.searchsorted(starts, points[:-1], side="right")
        levels.append(begun - np.searchsorted(ends, points[:-1], side="right"))
    return np.diff(points), levels


def _beside(kernels: list[Span], others: list[Span]) -> Times:
    """Seconds that each kernel spends beside any of the others."""
    edges = [time for span in others for time in (span.start, span.end)]
    if not edges or not kernels:
        return np.zeros(len(kernels))
    length, (level,) = _levels(Step(min(edges), max(edges)), others)
    points = min(edges) + np.concatenate([[0.0], np.cumsum(length)])
    covered = np.concatenate([[0.0], np.cumsum(length * (level > 0))])
    starts, ends = np.array([(span.start, span.end) for span in kernels]).T
    return np.interp(ends, points, covered) - np.interp(starts, points, covered)


def _compared(kernels: list[Span], alone: list[Span], beside: Times) -> dict[str, float]:
    """slowed, apart, extra and gone of Parts, by the kernels that both steps have."""
    own, before = _lengths(kernels), _lengths(alone)
    here, there = aligned(tuple(span.name for span in kernels), tuple(span.name for span in alone))
    longer = own[here] - before[there]
    is_beside = beside[here] > 0
    return {
        "slowed": float(longer[is_beside].sum()),
        "apart": float(longer[~is_beside].sum()),
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
    row, column = len(rows), len(columns)
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
