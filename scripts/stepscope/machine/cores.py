"""A processor core of its own for what one thread measures. Standard library only.

A step of many short kernels takes as long as the host needs to launch them. Free to move, its
threads change cores, which first have to wake. On one core that nobody else measures on, such a
step is quicker (figures in docs/measuring.md). Which core is free of others changes by the second
on a shared host, so that the quickest is looked for before each series; where several GPUs of a
machine measure at once, the core of another one's thread is not it.
"""

import contextlib
import os
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from . import told

SYS = Path("/sys")
TASKS = Path("/proc/self/task")
TURNS = 10_000  # of the loop that compares cores, about half a millisecond
ROUNDS = 3
MOST_TRIED = 16  # cores


@contextlib.contextmanager
def own_core() -> Iterator[None]:
    """Within it all threads of this process keep to the core that is the quickest now, if it has
    one thread to compute with (OMP_NUM_THREADS); else, and where a sandbox does not let a process
    choose, nothing changes."""
    before = os.sched_getaffinity(0)
    if os.environ.get("OMP_NUM_THREADS") != "1" or len(before) < 2:
        yield
        return
    try:
        with contextlib.suppress(OSError):  # a sandbox
            _move({_quickest(before)})
        yield
    finally:
        _move(before)


def _quickest(usable: set[int]) -> int:
    """The processor, one of each core, that runs a fixed loop in the least time: the median of a
    few rounds."""
    tried = sorted(map(max, whole(_full(usable))), reverse=True)[:MOST_TRIED]
    times: dict[int, list[float]] = {processor: [] for processor in tried}
    for _ in range(ROUNDS):
        for processor in tried:
            os.sched_setaffinity(0, {processor})
            times[processor].append(_loop())
    return min(tried, key=lambda processor: statistics.median(times[processor]))


def _loop() -> float:
    start = time.perf_counter()
    total = 0
    for turn in range(TURNS):
        total += turn & 7
    return time.perf_counter() - start


def _move(processors: set[int]) -> None:
    """Let every thread of this process run on these processors alone: autograd launches kernels
    from one of its own."""
    for task in TASKS.iterdir():
        with contextlib.suppress(OSError):  # it has ended, or a sandbox
            os.sched_setaffinity(int(task.name), processors)


def _full(usable: set[int]) -> set[int]:
    """Those of the processors that are no efficiency cores."""
    return usable - _processors(told(SYS / "devices/cpu_atom/cpus")) or usable


def whole(usable: set[int]) -> set[frozenset[int]]:
    """The cores that these processors belong to, each as those of its processors."""
    return {frozenset(usable & {processor, *siblings(processor)}) for processor in usable}


def siblings(processor: int) -> set[int]:
    """Processors that share a core with this one."""
    place = f"devices/system/cpu/cpu{processor}/topology/thread_siblings_list"
    return _processors(told(SYS / place))


def _processors(text: str) -> set[int]:
    """The processors of a list as the kernel writes it: "0-3,8". None of anything else."""
    found: set[int] = set()
    if re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text.strip()):
        for span in text.split(","):
            first, _, last = span.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found
