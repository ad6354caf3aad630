"""Peak memory of a part of a program, and what counts as running out of it."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import torch

from stepscope.measure import process
from stepscope.model.shape import ModelShape

FP32_BYTES = 4
_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|std::bad_alloc|ALLOC(ATION)?_FAILED", re.IGNORECASE)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error says that memory ran out: torch's own, Python's, the C++ library's or a CUDA library's."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and bool(_OUT_OF_MEMORY.search(str(error)))


def reason(error: BaseException) -> str:
    """What the error says, in one line; its type's name if it says nothing, as Python's own MemoryError."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


@contextlib.contextmanager
def caught(outcome) -> Iterator[None]:
    """Within it running out of memory ends the block and makes the outcome `oom`; other errors pass through."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        outcome.status, outcome.reason = "oom", reason(error)


def require_room(shape: ModelShape, device: str) -> None:
    """Raise MemoryError, in one line, if a model's parameters in fp32 take more than all memory that there is.

    That is the GPU's, or what a CPU has available: to fill these with what cannot fit would take minutes.
    """
    wanted = FP32_BYTES * shape.parameters
    room = torch.cuda.get_device_properties(0).total_memory if device == "cuda" else process.available_memory()
    if wanted > room:
        sizes = [f"{size / 2**30:,.1f} GiB" for size in (wanted, room)]
        raise MemoryError("predicted, not tried: the parameters alone are {}, the memory {}".format(*sizes))


def reset_peaks(device: str) -> None:
    """Start to look for a new peak."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM (proc(5))


def peaks(device: str) -> dict[str, int]:
    """Bytes at the peak since reset_peaks().

    On a GPU what the caching allocator had handed out (`allocated`) and had taken from the driver (`reserved`); on a
    CPU the process's resident set.
    """
    if device == "cuda":
        return {
            "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
            "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        }
    status = Path("/proc/self/status").read_text()
    return {"peak_resident_bytes": int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024}


def release(device: str) -> None:
    """Give the driver back what nothing refers to any more."""
    if device == "cuda":
        torch.cuda.empty_cache()
