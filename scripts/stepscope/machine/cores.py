"""A processor core of its own for what one thread measures. Standard library only.

A step of many short kernels takes as long as the host needs to launch them. Free to move, its threads change
cores, which first have to wake. On one core that nobody else measures on, such a step is quicker (figures in
docs/measuring.md). Which core is free of others changes by the second on a shared host, so that the quickest is looked
for before each series.

Where several GPUs of a machine measure at once each has cores of its own to choose from.
"""

import contextlib
import itertools
import os
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from stepscope.machine import gpus

SYS = Path("/sys")
TASKS = Path("/proc/self/task")
TURNS = 10_000  # of the loop that compares cores, about half a millisecond
ROUNDS = 3
MOST_TRIED = 16  # cores

# What starts other programs, which need cores too: Nsight Systems, a compiler's workers.
_STARTING_OTHERS = ("profile_step.py", "compiled", "flex")


@contextlib.contextmanager
def own_core() -> Iterator[None]:
    """Within it all threads of this process keep to the core that is the quickest now, if it has one thread to compute
    with (OMP_NUM_THREADS); else, and where a sandbox does not let a process choose, nothing changes."""
    before = os.sched_getaffinity(0)
    if os.environ.get("OMP_NUM_THREADS") != "1" or len(before) < 2:
        yield
        return
    try:
        _move({_quickest(before)})
        yield
    finally:
        _move(before)


def _quickest(usable: set[int]) -> int:
    """The processor, one of each core, that runs a fixed loop in the least time: the median of a few rounds."""
    tried = [max(core) for core in _cores(frozenset(usable))][:MOST_TRIED]
    times: dict[int, list[float]] = {processor: [] for processor in tried}
    for _ in range(ROUNDS):
        for processor in tried:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, {processor})
                times[processor].append(_loop())
    return min(tried, key=lambda processor: statistics.median(times[processor] or [float("inf")]))


def _loop() -> float:
    start, total = time.perf_counter(), 0
    for turn in range(TURNS):
        total += turn & 7
    return time.perf_counter() - start


def _move(processors: set[int]) -> None:
    """Let every thread of this process run on these processors alone: autograd launches kernels from one of its own."""
    for task in TASKS.iterdir():
        with contextlib.suppress(OSError):  # it has ended, or a sandbox
            os.sched_setaffinity(int(task.name), processors)


def keep_to(command: list[str], uuid: str, uuids: list[str]) -> None:
    """Keep this process, and the measuring program that it becomes, to the cores of its GPU; or off the cores of all.

    `command` is the program with its flags, `uuid` its GPU, `uuids` those that jobs may measure on. One thread that
    starts no other program needs one core; any other leaves the cores of the GPUs alone. Nothing changes where programs
    have more threads, the cores are too few for that, or a sandbox does not let a process choose.
    """
    flags = dict(itertools.pairwise(command))
    if flags.get("--threads") != "1":
        return
    usable = os.sched_getaffinity(0)
    cores = _cores_of_gpus(usable, uuids)
    if uuid not in cores:
        return
    chosen = {Path(command[0]).name, flags.get("--attention"), flags.get("--implementation")}
    if flags.get("--compile", "none") == "none" and chosen.isdisjoint(_STARTING_OTHERS):
        processors = cores[uuid]
    else:
        processors = usable - set().union(*cores.values())
    with contextlib.suppress(OSError):  # a sandbox
        os.sched_setaffinity(0, processors)


def _cores_of_gpus(usable: set[int], uuids: list[str]) -> dict[str, frozenset[int]]:
    """For each GPU the usable processors of its cores; of a group of GPUs for all or none.

    A group are the GPUs that are near the same processors. It gets at most half of their cores, each as many.
    """
    on_bus = {
        info["GPU UUID"]: _processors(_text(SYS / "bus/pci/devices" / address / "local_cpulist"))
        for address, info in gpus.gpus_on_bus().items()
        if "GPU UUID" in info
    }
    groups: dict[frozenset[int], list[str]] = {}
    for uuid in dict.fromkeys([*on_bus, *uuids]):
        groups.setdefault(frozenset(usable & on_bus.get(uuid, usable) or usable), []).append(uuid)
    found: dict[str, frozenset[int]] = {}
    for near, members in groups.items():
        cores = [core for core in _cores(near) if not any(core & taken for taken in found.values())]
        each = len(cores) // (2 * len(members))
        for place, member in enumerate(members if each else []):
            found[member] = frozenset().union(*cores[place * each : (place + 1) * each])
    return found


def _cores(usable: frozenset[int]) -> list[frozenset[int]]:
    """Processors by the core that they share, the last first: they serve fewest interrupts. No efficiency cores.

    A virtual machine may not show who shares a core. It is n and n + 1, or n and half the number more: of the second
    half every other processor is on a core of its own either way.
    """
    full = usable - _processors(_text(SYS / "devices/cpu_atom/cpus")) or usable
    cores = {usable & (_siblings(processor) | {processor}) for processor in full}
    if all(len(_siblings(processor)) < 2 for processor in full):
        order = sorted(full)
        cores = {frozenset({processor}) for processor in order[len(order) // 2 :][::-2]}
    return sorted(cores, key=max, reverse=True)


def _siblings(processor: int) -> set[int]:
    """Processors that share a core with this one."""
    return _processors(_text(SYS / f"devices/system/cpu/cpu{processor}/topology/thread_siblings_list"))


def _processors(text: str) -> set[int]:
    """The processors of a list as the kernel writes it: "0-3,8". None of anything else."""
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text.strip()):
        return set()
    spans = [span.split("-") for span in text.strip().split(",")]
    return {processor for span in spans for processor in range(int(span[0]), int(span[-1]) + 1)}


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
