"""How fast the host is while a cell runs: two fixed loops, timed before and after the steps of each process.

A step that launches limit takes as long as the host needs. On a shared or virtual machine that changes by the second,
as other machines use the same cores: on one H200's host the same loop of Python took from 2.0 to 4.4 ms.
"""

import statistics
import time
from collections.abc import Callable

import torch

TURNS = 50_000  # of the loop of plain Python, about 2 ms
LAUNCHES = 500  # of a kernel that adds 1 to one number, about 3 ms
ROUNDS = 3  # the median counts


def probe(device: str) -> dict[str, float]:
    """Seconds that both loops take now: `python` and, on a GPU, `launches` (the host's time to launch them alone)."""
    found = {"python": statistics.median(_python() for _ in range(ROUNDS))}
    if device == "cuda":
        number = torch.zeros(1, device=device)
        _launches(number)  # loads the kernel
        found["launches"] = statistics.median(_launches(number) for _ in range(ROUNDS))
    return found


def watched(device: str, measure: Callable[[], object]) -> tuple[object, list[dict[str, float]]]:
    """(what `measure` returns, the probes before and after it)."""
    before = probe(device)
    found = measure()
    return found, [before, probe(device)]


def _python() -> float:
    start, total = time.perf_counter(), 0
    for turn in range(TURNS):
        total += turn & 7
    return time.perf_counter() - start


def _launches(number: torch.Tensor) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(LAUNCHES):
        number.add_(1)
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return seconds
