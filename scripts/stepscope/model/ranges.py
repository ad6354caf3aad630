"""Named ranges: what the parts of a training step are called in a profiler's timeline.

Off by default: then a range is one shared context manager that does nothing, which takes the host a
fraction of a microsecond and the device nothing. A profiling program turns them on, for instance
with torch.cuda.nvtx.range.

Compiled code has none: the compiler would cut it at each, so that a profiler saw another program
than the clock.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

_NOTHING = nullcontext()
_opener: Callable[[str], AbstractContextManager] | None = None


def named(name: str) -> AbstractContextManager:
    """A context manager around what `name` stands for."""
    if torch.compiler.is_compiling() or _opener is None:
        return _NOTHING
    return _opener(name)


def are_on() -> bool:
    """Whether a profiler shows ranges now."""
    return _opener is not None


def turn_on(opener: Callable[[str], AbstractContextManager] | None) -> None:
    """From now on ranges are opened by `opener(name)`; None turns them off again."""
    global _opener
    _opener = opener
