"""A processor core of its own for each of several cells at a time. Standard library only.

A step of many short kernels takes as long as the host needs to launch them. Free to move, its threads change
cores, which first have to wake. On one core that nobody else measures on, such a step is quicker and its time is
much steadier, alone and beside others (benchmarks/several_gpus.py; figures in docs/measuring.md).
"""

import itertools
import os
import re
from collections.abc import Iterable
from pathlib import Path

from stepscope.plan import places

SYS = Path("/sys")
PROC = Path("/proc")

# What starts other programs, which need cores too: Nsight Systems, a compiler's workers.
_STARTING_OTHERS = ("profile_step.py", "compiled", "flex")


def is_enough_for(command: list[str]) -> bool:
    """Whether a measuring program, given with its flags, has one thread and starts no program that works beside it."""
    flags = dict(itertools.pairwise(command))
    if flags.get("--threads") != "1" or flags.get("--compile", "none") != "none":
        return False
    chosen = {Path(command[0]).name, flags.get("--attention"), flags.get("--implementation")}
    return chosen.isdisjoint(_STARTING_OTHERS)


def take(uuid: str, others: int) -> int | None:
    """A core that no other job has, near the GPU if it can be, for this process and the program that it becomes.

    None, and nothing changes, if that would leave no core for anything but this job and `others` like it, if all are
    taken, or if the machine does not let a process choose.
    """
    usable = os.sched_getaffinity(0)
    beside = usable & _beside(uuid) or usable
    cores = _cores(beside) | _cores(usable - beside)
    if len(cores) <= others + 1:
        return None
    folder = places.folder()
    for core in _apart(_cores(beside), others + 1) + _apart(_cores(usable - beside), others + 1):
        place = places.take(folder / f"core-{core}.place")
        if place is not None:
            try:
                os.sched_setaffinity(0, {cores[core]})
            except OSError:  # a sandbox that denies it
                os.close(place)
                return None
            places.keep(place)
            return cores[core]
    return None


def _cores(processors: set[int]) -> dict[int, int]:
    """Each core (its first processor, usable or not) with the first of these processors that is on it."""
    return {min(_siblings(processor) | {processor}): processor for processor in sorted(processors, reverse=True)}


def _apart(cores: Iterable[int], jobs: int) -> list[int]:
    """The cores in an order in which neighbours are far apart; the last, which serve fewest interrupts, first.

    A virtual machine may not know which of its processors share a core: n and n + 1, or n and half their number more.
    So the distance is odd.
    """
    order = sorted(cores, reverse=True)
    step = max(1, (len(order) // jobs - 1) | 1)
    return [core for first in range(step) for core in order[first::step]]


def _beside(uuid: str) -> set[int]:
    """Processors on the GPU's NUMA node."""
    for file in (PROC / "driver/nvidia/gpus").glob("*/information"):
        if re.search(rf"^GPU UUID:\s*{re.escape(uuid)}\s*$", _text(file), re.MULTILINE):
            return _processors(_text(SYS / "bus/pci/devices" / file.parent.name / "local_cpulist"))
    return set()


def _siblings(processor: int) -> set[int]:
    """Processors that share a core with this one."""
    return _processors(_text(SYS / f"devices/system/cpu/cpu{processor}/topology/thread_siblings_list"))


def _processors(text: str) -> set[int]:
    """The processors of a list as the kernel writes it: "0-3,8"."""
    spans = [span.split("-") for span in text.strip().split(",") if span]
    return {processor for span in spans for processor in range(int(span[0]), int(span[-1]) + 1)}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
