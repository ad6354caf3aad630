"""The timers: the host's clock around synchronised work, and CUDA events around short work of a
GPU."""

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import perf_counter  # here a model of one's own cannot change it

import torch

from .found import Call

# From a name, as a phase's, to what is entered around it.
Around = Callable[[str], AbstractContextManager]
PAUSE_CYCLES = 2_000_000  # about a millisecond: longer than launching takes


class Clock:
    """Times calls on a device. On a GPU it waits for all work before and after."""

    def __init__(self, device: str):
        self._cuda = device == "cuda"

    def synchronize(self) -> None:
        """Wait until the GPU has done all its work; nothing on a CPU."""
        if self._cuda:
            torch.cuda.synchronize()

    def time(self, work: Call) -> float:
        """Seconds that `work` takes by the host's clock."""
        self.synchronize()
        start = perf_counter()
        work()
        self.synchronize()
        return perf_counter() - start


def time_queued(work: Call, before: Call) -> float:
    """For work that takes a GPU less time than it takes the host to launch it: seconds of the GPU
    between two events.

    The GPU runs `before` and then waits until all of the work is in its queue, so that it never
    waits for the host while it works. Waits for the GPU before and after.
    """
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    before()
    torch.cuda._sleep(PAUSE_CYCLES)
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000


def time_in_a_row(work: Call, count: int) -> list[float]:
    """Seconds of the GPU for each of so many works between two events. All are in its queue at
    once, so that it waits for the host at most before the first."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    torch.cuda.synchronize()
    for event in events[:-1]:
        event.record()
        work()
    events[-1].record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) / 1000 for before, after in itertools.pairwise(events)]
