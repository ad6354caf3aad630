"""A processor core of its own for a cell on one of several GPUs. Standard library only.

A step of many short kernels takes as long as the host needs to launch them. Free to move, its threads change
cores, which first have to wake. On one core that nobody else measures on, such a step is quicker and its time is
much steadier, alone and beside others (benchmarks/several_gpus.py; figures in docs/measuring.md).

Each GPU of the machine has its core, so whoever holds the GPU holds the core.
"""

import contextlib
import itertools
import os
import re
from pathlib import Path

from stepscope.machine import gpus

SYS = Path("/sys")

# What starts other programs, which need cores too: Nsight Systems, a compiler's workers.
_STARTING_OTHERS = ("profile_step.py", "compiled", "flex")


def keep_to(command: list[str], uuid: str, uuids: list[str]) -> None:
    """Keep this process, and the measuring program that it becomes, to the core of its GPU; or off the cores of all.

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
        processors = {max(cores[uuid])}
    else:
        processors = usable - set().union(*cores.values())
    with contextlib.suppress(OSError):  # a sandbox
        os.sched_setaffinity(0, processors)


def _cores_of_gpus(usable: set[int], uuids: list[str]) -> dict[str, frozenset[int]]:
    """For each GPU the usable processors of its core; of a group of GPUs for all or none.

    A group are the GPUs that are near the same processors. It gets at most half of their cores.
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
        if len(cores) >= 2 * len(members):
            apart = cores[:: len(cores) // len(members)]
            found |= dict(zip(members, apart, strict=False))
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
