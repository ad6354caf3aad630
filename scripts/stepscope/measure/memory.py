"""Peak memory of a part of a program, and what counts as running out of it."""

import re
from pathlib import Path

import torch

from stepscope.machine import process
from stepscope.model.out_of_memory import is_out_of_memory as is_out_of_memory
from stepscope.model.out_of_memory import said_by
from stepscope.model.shape import ModelShape

FP32_BYTES = 4
# What tensors asked the caching allocator for, what it handed out for that in whole blocks, and
# what it has taken from the driver: what it keeps for later, and the pools of CUDA graphs, count in
# the last alone.
OF_ALLOCATOR = {
    "peak_asked": "requested_bytes",
    "peak_allocated": "allocated_bytes",
    "peak_reserved": "reserved_bytes",
}
RESIDENT = "peak_resident"  # on a CPU, whose allocator keeps no account: the process's resident set


def reason(error: BaseException) -> str:
    """What the error says, in one line; its type's name if it says nothing, as Python's own
    MemoryError."""
    return (said_by(error).strip().splitlines() or [type(error).__name__])[0][:300]


def require_room(shape: ModelShape, device: str) -> None:
    """Raise MemoryError, in one line, if a model's parameters in fp32 take more than all memory
    that there is: to fill it with what cannot fit would take minutes."""
    wanted = FP32_BYTES * shape.parameters
    room = capacity(device)
    if wanted > room:
        sizes = [f"{size / 2**30:,.1f} GiB" for size in (wanted, room)]
        raise MemoryError(
            "predicted, not tried: the parameters alone are {}, the memory {}".format(*sizes)
        )


def capacity(device: str) -> int:
    """Bytes of a GPU's memory, or what a CPU has available."""
    if device == "cuda":
        return torch.cuda.get_device_properties(0).total_memory
    return process.available_memory()


def reset_peaks(device: str) -> None:
    """Start to look for a new peak."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM (proc(5))


def held(device: str) -> dict[str, int]:
    """Bytes that are taken now, by the names of peaks()."""
    return _bytes(device, "current", "VmRSS")


def peaks(device: str, before: dict[str, int] | None = None) -> dict[str, int]:
    """Bytes at the peak since reset_peaks(), less those that held() gave `before` what is measured
    was built."""
    found = _bytes(device, "peak", "VmHWM")
    return {name: max(0, size - (before or {}).get(name, 0)) for name, size in found.items()}


def _bytes(device: str, of_allocator: str, of_process: str) -> dict[str, int]:
    if device == "cuda":
        statistics = torch.cuda.memory_stats()
        return {
            name: statistics.get(f"{key}.all.{of_allocator}", 0)
            for name, key in OF_ALLOCATOR.items()
        }
    status = Path("/proc/self/status").read_text()
    found = re.search(rf"{of_process}:\s+(\d+) kB", status)
    assert found is not None, "Linux says that of every process (proc(5))"
    return {RESIDENT: int(found.group(1)) * 1024}


def release(device: str) -> None:
    """Give the driver back what nothing refers to any more."""
    if device == "cuda":
        torch.cuda.empty_cache()
