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


def take(uuid: str, uuids: list[str]) -> int | None:
    """A core that no other job has, near the GPU if it can be, for this process and the program that it becomes.

    `uuids`: the GPUs of the machine that jobs may measure on. None, and nothing changes, if a core for each of them
    would leave none for anything else, if all are taken, or if the machine does not let a process choose.
    """
    usable = os.sched_getaffinity(0)
    folder = places.folder()
    for core in _order(usable, uuid, len(uuids)):
        place = places.take(folder / f"core-{core}.place")
        if place is not None:
            processor = _cores(usable)[core]
            if not _keep_to({processor}):
                os.close(place)
                return None
            places.keep(place)
            return processor
    return None


def leave(uuids: list[str]) -> None:
    """Keep this process, and the program that it becomes, off the cores that jobs on these GPUs `take` first."""
    usable = os.sched_getaffinity(0)
    theirs = {core for uuid in uuids for core in _order(usable, uuid, len(uuids))[: len(uuids)]}
    others = {processor for processor in usable if _core(processor) not in theirs}
    if others != usable:
        _keep_to(others)


def _keep_to(processors: set[int]) -> bool:
    try:
        os.sched_setaffinity(0, processors)
    except OSError:  # a sandbox that denies it, or none are left
        return False
    return True


def _order(usable: set[int], uuid: str, jobs: int) -> list[int]:
    """The cores in the order in which a job on this GPU asks for one; none if there are too few for so many jobs."""
    beside = usable & _beside(uuid) or usable
    near, far = _cores(beside), _cores(usable - beside)
    return _apart(near, jobs) + _apart(far.keys() - near.keys(), jobs) if len(near | far) > jobs else []


def _cores(processors: set[int]) -> dict[int, int]:
    """Each core (its first processor, usable or not) with the first of these processors that is on it."""
    return {_core(processor): processor for processor in sorted(processors, reverse=True)}


def _core(processor: int) -> int:
    return min(_siblings(processor) | {processor})


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
