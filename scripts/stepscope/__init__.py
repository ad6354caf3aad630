"""StepScope's library: everything that the programs in scripts/ share; and what a training script
takes from it, `from stepscope import Step, phase, record`."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Step and phase, once they are asked for: no cell of ours depends on them."""
    if name in ("Step", "phase"):
        return getattr(importlib.import_module(f"{__name__}.step"), name)
    raise AttributeError(name)


def record(*given: Any, **named: Any) -> Any:
    """Record steps of a loop that is not one's own; see stepscope.measure.loop.Recorded."""
    # By name: it needs torch, and no cell depends on it.
    loop = importlib.import_module(f"{__name__}.measure.loop")
    return loop.Recorded(*given, **named)
