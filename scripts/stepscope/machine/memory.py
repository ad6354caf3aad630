"""The memory of a machine: that of its GPU, or the host's. Standard library only."""

import contextlib
import re
from pathlib import Path

from stepscope.machine import gpus

PROC, GROUP = Path("/proc"), Path("/sys/fs/cgroup")


def capacity(device: str) -> int | None:
    """Bytes of the first GPU, or of the host where the device is a CPU; None where nothing
    tells."""
    if device == "cuda":
        found = gpus.visible_gpus()
        return found[0].memory_mib * 2**20 or None if found else None
    return host_memory()


def host_memory() -> int | None:
    """Bytes of the host's memory, or what its control group may take of them."""
    try:
        total = re.search(r"^MemTotal:\s+(\d+) kB", (PROC / "meminfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    limits = [int(total[1]) * 1024] if total else []
    with contextlib.suppress(OSError, ValueError):  # no control group, or "max"
        limits.append(int((GROUP / "memory.max").read_text()))
    return min(limits, default=None)


def available_memory() -> int:
    """Bytes that this process may still take: the machine's available memory or its control group's
    rest."""
    said = (PROC / "meminfo").read_text()
    available = re.search(r"^MemAvailable:\s+(\d+) kB", said, re.MULTILINE)
    assert available is not None, "Linux has said that since 3.14 (proc_meminfo(5))"
    limits = [int(available[1]) * 1024]
    with contextlib.suppress(OSError, ValueError):  # no control group, or "max"
        most, taken = (int((GROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        limits.append(most - taken)
    return min(limits)
