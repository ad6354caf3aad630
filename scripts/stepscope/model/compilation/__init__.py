"""What is compiled, one module for each value of the option `compile` (see
`stepscope.model.chosen`): its COMPILATION says what torch.compile is given."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """parts: "blocks" for each of the blocks, "model" for the whole, "" for nothing. replays:
    whether forward and backward are replayed from CUDA graphs."""

    parts: Literal["", "blocks", "model"]
    replays: bool = False


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled for each shape that it meets."""
    import torch  # which what reads of options does without

    return torch.compile(function, dynamic=False)
