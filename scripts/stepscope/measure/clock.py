"""The one timer: host clock around synchronised work, with CUDA events beside it."""

import time
from collections.abc import Callable

import torch


class Clock:
    """Times calls on a device. On a GPU it waits for all work before and after, and records a pair of events."""

    def __init__(self, device: str):
        self._cuda = device == "cuda"

    def synchronize(self) -> None:
        """Wait until the GPU has done all its work; nothing on a CPU."""
        if self._cuda:
            torch.cuda.synchronize()

    def time(self, work: Callable[[], object]) -> tuple[float, float | None]:
        """Seconds that `work` takes by the host's clock and, on a GPU, between two CUDA events (else None)."""
        if not self._cuda:
            start = time.perf_counter()
            work()
            return time.perf_counter() - start, None
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start = time.perf_counter()
        before.record()
        work()
        after.record()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        return seconds, before.elapsed_time(after) / 1000
