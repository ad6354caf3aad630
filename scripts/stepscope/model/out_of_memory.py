"""What counts as running out of memory."""

import re

import torch

_SAID = re.compile(
    r"out of memory|can't allocate memory|std::bad_alloc|ALLOC(ATION)?_FAILED", re.IGNORECASE
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error says that memory ran out: torch's own, Python's, the C++ library's or a
    CUDA library's."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and bool(_SAID.search(said_by(error)))


def said_by(error: BaseException) -> str:
    """What an error says; nothing where it fails at that, as one of somebody's own may."""
    try:
        return str(error)
    except Exception:
        return ""
