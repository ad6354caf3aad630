"""Processes that work together: started at once, watched, and ended at once.

In a collective every rank waits for all others, so that one that is lost leaves the rest waiting
for minutes. Here the first one that fails ends them all, and is named. Ranks find each other by a
file, not by a port, which another program may have.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from stepscope.machine import cores
from stepscope.measure import processes
from stepscope.measure.found import Outcome


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
    runs = {f"rank {rank} of {count}": partial(_run, work, rank) for rank in range(count)}
    return processes.together(runs, seconds)


def _run(work: Callable[[int], object], rank: int) -> object:
    try:
        return work(rank)
    except VariantError as error:
        error.outcome.reason = f"rank {rank}: {error.outcome.reason}"
        return error


def keep_to_own_cores(rank: int, count: int) -> None:
    """Give a rank its share of the cores, threads of one core to one rank, so that ranks that look
    for the quickest core do not find the same; nothing where there are fewer cores than ranks."""
    ordered = sorted(cores.whole(os.sched_getaffinity(0)), key=min)
    own = ordered[rank * len(ordered) // count : (rank + 1) * len(ordered) // count]
    if own:
        os.sched_setaffinity(0, set().union(*own))
