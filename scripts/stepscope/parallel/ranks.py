"""Processes that work together: started at once, watched, and ended at once.

In a collective every rank waits for all others, so that one that is lost leaves the rest waiting
for minutes. Here the first one that fails ends them all, and is named. Ranks find each other by a
file, not by a port, which another program may have.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from stepscope.machine import cores, process
from stepscope.measure.found import Outcome
from stepscope.measure.processes import forked

GRACE = 1.0  # seconds in which others may fail of what ended the first; the cause is named


@dataclass(eq=False)
class VariantError(Exception):
    """A variant that a rank cannot have, and what became of it."""

    variant: str
    outcome: Outcome


def together(count: int, work: Callable[[int], object], seconds: float | None = None) -> list:
    """What `work`, called with the rank, returns in each of `count` forked processes.

    Ends all of them where one fails: raises VariantError with the rank's name where it lacks memory
    or an ability for a variant, and else ends the program with one line, as after `seconds`. What
    is returned has to be picklable.
    """
    started = [forked(_run, work, rank, name=f"rank {rank} of {count}") for rank in range(count)]
    failed: dict[float, BaseException] = {}  # by when it was
    with ThreadPoolExecutor(count) as listeners:
        heard = [listeners.submit(_received, *each, failed) for each in started]
        try:
            _, late = wait(heard, seconds, FIRST_EXCEPTION)
            if failed:
                time.sleep(GRACE)
                raise failed[min([*failed])]
            if late:
                raise SystemExit("the ranks did not end in the time that they were given")
            return [each.result() for each in heard]
        finally:
            for child, _ in started:
                child.kill()
                child.join()


def _run(work: Callable[[int], object], rank: int, pipe: Connection) -> None:
    process.die_with_parent()
    failed: BaseException | None = None
    try:
        pipe.send(work(rank))
    except VariantError as error:
        error.outcome.reason = f"rank {rank}: {error.outcome.reason}"
        pipe.send(error)
    except BaseException as error:
        failed = error
    process.end_at_once(failed)  # to take a process group down waits for the others


def _received(child: BaseProcess, pipe: Connection, failed: dict[float, BaseException]) -> object:
    """What a rank sends. What it fails of is noted and raised; what a signal killed comes before
    those that missed it."""
    try:
        found = pipe.recv()
    except EOFError:  # it ended without a word
        child.join()
        code = child.exitcode or 0
        how = f"ended with exit code {code} and without a result"
        if code < 0:
            how = f"was killed by signal {-code}"
        found = SystemExit(f"error: {child.name} {how}; all ranks were ended")
    except Exception as error:  # what it sent cannot be read
        found = SystemExit(f"error: {child.name}: {error}")
    if isinstance(found, BaseException):
        # A negative code is that of a signal.
        failed.setdefault(0.0 if (child.exitcode or 0) < 0 else time.time(), found)
        raise found
    return found


def keep_to_own_cores(rank: int, count: int) -> None:
    """Give a rank its share of the cores, threads of one core to one rank, so that ranks that look
    for the quickest core do not find the same; nothing where there are fewer cores than ranks."""
    ordered = sorted(cores.whole(os.sched_getaffinity(0)), key=min)
    own = ordered[rank * len(ordered) // count : (rank + 1) * len(ordered) // count]
    if own:
        os.sched_setaffinity(0, set().union(*own))
