"""The memory of a machine: that of its GPU, or the host's. Standard library only."""

import re
from pathlib import Path

from . import gpus, told

PROC = Path("/proc")
GROUP = Path("/sys/fs/cgroup")


def capacity(device: str) -> int:
    """Bytes of the first GPU; where the device is a CPU those that a process may take now."""
    if device == "cuda":
        return gpus.visible_gpus()[0].memory_mib * 2**20
    return available_memory()


def available_memory() -> int:
    """Bytes that this process may still take: the machine's available memory or its control group's
    rest."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", told(PROC / "meminfo"), re.MULTILINE)
    assert found, "Linux says it since 3.14 (proc_meminfo(5))"
    host = int(found[1]) * 1024
    most, used = (told(GROUP / f"memory.{name}").strip() for name in ("max", "current"))
    return min(host, int(most) - int(used)) if most.isdecimal() else host
