"""The memory of a machine: that of its GPU, or the host's. Standard library only."""

import math
import re
from pathlib import Path

from stepscope.machine import gpus, told

PROC = Path("/proc")
GROUP = Path("/sys/fs/cgroup")


def capacity(device: str) -> int:
    """Bytes of the first GPU; where the device is a CPU of the host's memory, or what its control
    group may take of that."""
    if device == "cuda":
        return gpus.visible_gpus()[0].memory_mib * 2**20
    return int(min(_said("MemTotal"), _of_group("max", math.inf)))


def available_memory() -> int:
    """Bytes that this process may still take: the machine's available memory or its control group's
    rest."""
    rest = _of_group("max", math.inf) - _of_group("current", 0)
    return int(min(_said("MemAvailable"), rest))


def _said(name: str) -> int:
    """Bytes that the kernel tells under a name (proc_meminfo(5))."""
    found = re.search(rf"^{name}:\s+(\d+) kB", told(PROC / "meminfo"), re.MULTILINE)
    assert found, "Linux says all of them since 3.14"
    return int(found[1]) * 1024


def _of_group(name: str, unknown: float) -> float:
    """Bytes of this process's control group; `unknown` without one, or without a limit ("max")."""
    said = told(GROUP / f"memory.{name}").strip()
    return int(said) if said.isdecimal() else unknown
