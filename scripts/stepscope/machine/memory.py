"""The memory of a machine: that of its GPU, or the host's. Standard library only."""

import re
from pathlib import Path

from stepscope.machine import gpus, told

PROC = Path("/proc")
GROUP = Path("/sys/fs/cgroup")


def capacity(device: str) -> int | None:
    """Bytes of the first GPU, or of the host where the device is a CPU; None where nothing
    tells."""
    if device == "cuda":
        found = gpus.visible_gpus()
        return found[0].memory_mib * 2**20 or None if found else None
    return host_memory()


def host_memory() -> int | None:
    """Bytes of the host's memory, or what its control group may take of them."""
    total = _said("MemTotal")
    return total and min(total, _of_group("max") or total)


def available_memory() -> int:
    """Bytes that this process may still take: the machine's available memory or its control group's
    rest."""
    available = _said("MemAvailable")
    assert available is not None, "Linux has said that since 3.14"
    most = _of_group("max")
    used = _of_group("current")
    return available if most is None or used is None else min(available, most - used)


def _said(name: str) -> int | None:
    """Bytes that the kernel tells under a name (proc_meminfo(5)); None without /proc."""
    found = re.search(rf"^{name}:\s+(\d+) kB", told(PROC / "meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _of_group(name: str) -> int | None:
    """Bytes of this process's control group; None without one, or without a limit ("max")."""
    said = told(GROUP / f"memory.{name}").strip()
    return int(said) if said.isdecimal() else None
