"""Named ranges: what the parts of a training step are called in a profiler's timeline.

Off by default: then a range is one shared context manager that does nothing, which takes the host a
fraction of a microsecond and the device nothing. A profiling program turns them on, for instance
with torch.cuda.nvtx.range.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

_NOTHING = nullcontext()
_opener: Callable[[str], AbstractContextManager] | None = None


def named(name: str) -> AbstractContextManager:
    """A context manager around what `name` stands for."""
    return _NOTHING if _opener is None else _opener(name)


def are_on() -> bool:
    """Whether a profiler shows ranges now."""
    return _opener is not None


def turn_on(opener: Callable[[str], AbstractContextManager] | None) -> None:
    """From now on ranges are opened by `opener(name)`; None turns them off again."""
    global _opener
    _opener = opener
