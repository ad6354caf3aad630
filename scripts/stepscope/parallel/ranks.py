"""Processes that work together: started at once, watched, and ended at once.

In a collective every rank waits for all others, so that one that is lost leaves the rest waiting
for minutes. Here the first one that fails ends them all, and is named. Ranks find each other by a
file, not by a port, which another program may have.
"""

import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing import connection
from typing import NamedTuple

from stepscope.machine import cores, process

GRACE = 1.0  # seconds in which others may fail of what ended the first; the cause is named


class VariantError(Exception):
    """A variant that a rank cannot have: `status` is oom or unsupported."""

    def __init__(self, variant: str, status: str, reason: str):
        super().__init__(variant, status, reason)  # all of them: it is pickled
        self.variant = variant
        self.status = status
        self.reason = reason


class LateError(Exception):
    """The ranks took longer than they were given."""


class _News(NamedTuple):
    """What a rank says last. order: the least is the cause where several fail at once."""

    found: object = None
    failed: bool = False
    variant: VariantError | None = None
    order: float = 0.0
    how: str = ""


class _Rank(NamedTuple):
    child: multiprocessing.process.BaseProcess
    pipe: connection.Connection


def together(count: int, work: Callable[[int], object], seconds: float | None = None) -> list:
    """What `work`, called with the rank, returns in each of `count` forked processes.

    Ends all of them where one fails: raises VariantError with the rank's name where it lacks memory
    or an ability for a variant, and else ends the program with one line. Raises LateError after
    `seconds`. What is returned has to be picklable.
    """
    sys.stdout.flush()
    started = [_started(work, rank) for rank in range(count)]
    limit = None if seconds is None else time.monotonic() + seconds
    found: dict[int, object] = {}
    try:
        while len(found) < count:
            news = _heard(started, set(found), limit)
            if not news:
                raise LateError("the ranks did not end in the time that they were given")
            if any(each.failed for each in news.values()):
                time.sleep(GRACE)
                news |= _heard(started, {*found, *news}, time.monotonic())
                _complain(news, count)
            found |= {rank: each.found for rank, each in news.items()}
    finally:
        for rank in started:
            rank.child.kill()
            rank.child.join()
    return [found[rank] for rank in range(count)]


def _started(work: Callable[[int], object], rank: int) -> _Rank:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(work, rank, theirs))
    child.start()
    theirs.close()  # so that the end of the rank is the end of the pipe
    return _Rank(child, ours)


def _run(work: Callable[[int], object], rank: int, pipe: connection.Connection) -> None:
    process.die_with_parent()
    try:
        pipe.send(_News(work(rank)))
    except VariantError as error:
        arguments = (error.variant, error.status, f"rank {rank}: {error.reason}")
        pipe.send(_News(failed=True, variant=VariantError(*arguments), order=time.time()))
    except BaseException:
        traceback.print_exc()
        pipe.send(_News(failed=True, order=time.time(), how="failed"))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # to take a process group down waits for the others


def _heard(started: list[_Rank], known: set[int], limit: float | None) -> dict[int, _News]:
    """The news of ranks that have any, by rank, but for those known; waits until `limit`."""
    waiting = {rank: each for rank, each in enumerate(started) if rank not in known}
    left = None if limit is None else max(0.0, limit - time.monotonic())
    ready = connection.wait([each.pipe for each in waiting.values()], left)
    return {rank: _received(each) for rank, each in waiting.items() if each.pipe in ready}


def _received(rank: _Rank) -> _News:
    try:
        return rank.pipe.recv()
    except EOFError:  # it ended without a word
        rank.child.join()
        code = rank.child.exitcode or 0
        how = f"was killed by signal {-code}" if code < 0 else "ended without a result"
        return _News(failed=True, how=how)


def _complain(news: dict[int, _News], count: int) -> None:
    """Raise what the first failure is: what a signal killed comes before those that missed it."""
    failed = {rank: each for rank, each in news.items() if each.failed}
    rank = min(failed, key=lambda each: failed[each].order)
    if error := failed[rank].variant:
        raise error
    sys.exit(f"error: rank {rank} of {count} {failed[rank].how}; all ranks were ended")


def keep_to_own_cores(rank: int, count: int) -> None:
    """Give a rank its share of the cores, threads of one core to one rank, so that ranks that look
    for the quickest core do not find the same; nothing where there are fewer cores than ranks."""
    usable = os.sched_getaffinity(0)
    whole = {frozenset(usable & (cores.siblings(each) | {each})) for each in usable}
    ordered = sorted(whole, key=min)
    own = ordered[rank * len(ordered) // count : (rank + 1) * len(ordered) // count]
    if own:
        os.sched_setaffinity(0, set().union(*own))
