"""Which ranges lie in which, and which of them hold a point in time: arrays of positions, -1 for
none."""

from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from . import TraceError

MOST_OPEN = 1000  # ranges in each other: what takes time for each level would take hours


def arrays(table: pd.DataFrame, *columns: str) -> list[np.ndarray]:
    """Columns of a table as arrays."""
    return [table[column].to_numpy() for column in columns]


def groups(keys: np.ndarray) -> Iterable[tuple[int, np.ndarray]]:
    """(key, its positions in ascending order) for each distinct key."""
    found = pd.Series(keys).groupby(keys).indices
    return cast(dict[int, np.ndarray], found).items()


def launched_by(
    owner: np.ndarray, of_launch: np.ndarray, launches: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each owner of ranges, a process or a thread: its ranges, and those of the launches, in
    their order, that it made."""
    made = {key: launches[part] for key, part in groups(of_launch[launches])}
    for key, own in groups(owner):
        yield own, made.get(key, launches[:0])


def climb(start: np.ndarray, parent: np.ndarray, skipped: np.ndarray) -> np.ndarray:
    """From each range (or -1) up to the first that is not skipped, itself included; -1 if there is
    none."""
    at = start.copy()
    moving = np.flatnonzero(at >= 0)
    while len(moving):
        moving = moving[skipped[at[moving]]]
        at[moving] = parent[at[moving]]
        moving = moving[at[moving] >= 0]
    return at


def inside_itself(parent: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """For each range whether one around it has the same code: it is a part of what that one
    counts."""
    found = np.zeros(len(parent), dtype=bool)
    own = np.flatnonzero(parent >= 0)
    around = parent[own]
    while len(own):
        found[own] |= codes[own] == codes[around]
        around = parent[around]
        going_on = (around >= 0) & ~found[own]
        own, around = own[going_on], around[going_on]
    return found


def nest(
    ranges: pd.DataFrame, thread: np.ndarray, time: np.ndarray, linked: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(parent of each range, innermost range of each launch); a launch has a thread and a time.

    A range that ends after the range around it (not possible with push and pop, but with domains)
    has no parent and holds no others.
    """
    parent = np.full(len(ranges), -1)
    innermost = np.full(len(time), -1)
    starts, ends, owner = arrays(ranges, "start", "end", "thread")
    nested = np.flatnonzero(ranges["nested"])
    for part, launched in launched_by(owner[nested], thread, np.flatnonzero(linked)):
        own = nested[part]
        own = own[np.lexsort((-ends[own], starts[own]))]
        start = starts[own]
        end = ends[own]
        around = _around(start, end)
        crosses = (around >= 0) & (end > end[around])
        parent[own] = np.where((around >= 0) & ~crosses, own[around], -1)
        at = np.searchsorted(start, time[launched], "right") - 1
        closed = np.flatnonzero(at >= 0)
        while len(closed):  # from the latest start outwards to a range that is still open
            closed = closed[crosses[at[closed]] | (end[at[closed]] <= time[launched[closed]])]
            at[closed] = around[at[closed]]
            closed = closed[at[closed] >= 0]
        innermost[launched] = np.where(at >= 0, own[at], -1)
    return parent, innermost


def _around(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """For each of one thread's ranges, outer before inner: the position of the innermost open one
    at its start, or -1.

    What ends after that one crosses it, and is not counted as open.
    """
    around: list[int] = []
    stack: list[tuple[float, int]] = []
    # End and position of the innermost open range.
    until = float("inf")
    now = -1
    for position, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while until <= start:
            until, now = stack.pop()
        around.append(now)
        if end <= until:
            stack.append((until, now))
            until = end
            now = position
            if len(stack) > MOST_OPEN:
                raise TraceError(
                    f"more than {MOST_OPEN:,} named ranges of one thread lie in each other; "
                    "end each with range_pop(), or record fewer steps"
                )
    return np.array(around, dtype=np.int64)


def locate(
    own: pd.DataFrame, process: np.ndarray, thread: np.ndarray, time: np.ndarray, linked: np.ndarray
) -> np.ndarray:
    """For each launch: in which of these ranges (their labels) it lies, -1 outside.

    A range of the launching thread goes before one of another thread of the process, and of ranges
    within each other the outermost one counts.
    """
    found = np.full(len(time), -1)
    launches = np.flatnonzero(linked)
    for column, of_launch in (("process", process), ("thread", thread)):
        for part, launched in launched_by(own[column].to_numpy(), of_launch, launches):
            at = containing(own.iloc[part], time[launched])
            found[launched[at >= 0]] = at[at >= 0]
    return found


def containing(own: pd.DataFrame, time: np.ndarray) -> np.ndarray:
    """Label of the range that holds each time, of several the one that ends last; -1 outside
    all."""
    if own.empty:
        return np.full(len(time), -1)
    own = own.sort_values(["start", "end"])
    start, end = arrays(own, "start", "end")
    at = np.searchsorted(start, time, "right") - 1
    last = reaching(end)[at]
    inside = (at >= 0) & (time < end[last])
    return np.where(inside, own.index.to_numpy()[last], -1)


def reaching(end: np.ndarray) -> np.ndarray:
    """For each interval, in the order of their starts, the position of the one that ends last of
    all up to it."""
    is_latest = end == np.maximum.accumulate(end)
    return np.maximum.accumulate(np.where(is_latest, np.arange(len(end)), 0))


def union(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(starts, ends) of the times that at least one of the intervals covers, in ascending order."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    apart = start[1:] > end[:-1]
    some = np.ones(min(len(start), 1), dtype=bool)
    return start[np.concatenate([some, apart])], end[np.concatenate([apart, some])]


def covered(start: np.ndarray, end: np.ndarray, until: ArrayLike) -> np.ndarray:
    """How much of the time before each of some points the union of intervals covers."""
    start, end = union(start, end)
    total = np.append(0, np.cumsum(end - start))
    at = np.searchsorted(start, until, "right")
    return total[at] - np.maximum(np.append(end, 0)[at - 1] - until, 0) * (at > 0)


def latest_before(entries: pd.DataFrame, asked: pd.DataFrame) -> np.ndarray:
    """For each row of `asked` the position of the latest entry that is equal in all columns but the
    last, the time, and is at most as late.

    If all are later, the first; -1 where no entry is equal.
    """
    *key, time = entries.columns
    entries, asked = (
        table.astype(np.int64).reset_index(drop=True).sort_values(time, kind="stable")
        for table in (entries, asked)
    )
    entries = entries.reset_index(names="at")
    latest = pd.merge_asof(asked, entries, on=time, by=key)["at"]
    first = asked.merge(entries.drop_duplicates(key)[["at", *key]], how="left", on=key)["at"]
    found = latest.fillna(first).fillna(-1).to_numpy(dtype=np.int64)
    return found[np.argsort(asked.index)]
