"""The memory of a machine: that of its GPU, or the host's. Standard library only."""

import contextlib
import re
from pathlib import Path

from stepscope.machine import gpus

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
    limits = []
    with contextlib.suppress(OSError):
        limits.append(_said("MemTotal"))
    if limits:
        with contextlib.suppress(OSError, ValueError):  # no control group, or "max"
            limits.append(_of_group("max"))
    return min(limits, default=None)


def available_memory() -> int:
    """Bytes that this process may still take: the machine's available memory or its control group's
    rest."""
    limits = [_said("MemAvailable")]
    with contextlib.suppress(OSError, ValueError):  # no control group, or "max"
        limits.append(_of_group("max") - _of_group("current"))
    return min(limits)


def _said(name: str) -> int:
    """Bytes that the kernel tells under a name (proc_meminfo(5)). Raises OSError without /proc."""
    said = (PROC / "meminfo").read_text()
    found = re.search(rf"^{name}:\s+(\d+) kB", said, re.MULTILINE)
    assert found is not None, "Linux has said that since 3.14"
    return int(found[1]) * 1024


def _of_group(name: str) -> int:
    return int((GROUP / f"memory.{name}").read_text())
