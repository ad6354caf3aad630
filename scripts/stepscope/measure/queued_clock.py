"""The timer for work that takes a GPU less time than it takes the host to launch it."""

import time
from collections.abc import Callable

import torch

PAUSE_CYCLES = 2_000_000  # about a millisecond: longer than launching takes


def time_queued(work: Callable[[], object], before: Callable[[], object]) -> tuple[float, float]:
    """(seconds of the GPU between two events, seconds until the host had launched the work).

    The GPU runs `before` and then waits until all of the work is in its queue, so that it never waits for the host
    while it works. Waits for the GPU before and after.
    """
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    before()
    torch.cuda._sleep(PAUSE_CYCLES)
    start.record()
    launched = time.perf_counter()
    work()
    launched = time.perf_counter() - launched
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000, launched
