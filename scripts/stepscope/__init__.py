"""StepScope's library: everything that the programs in scripts/ share; and what a training script
takes from it, `from stepscope import Step, phase, record`."""

import importlib
from typing import Any

from stepscope.step import Step as Step
from stepscope.step import phase as phase


def record(*given: Any, **named: Any) -> Any:
    """Record steps of a loop that is not one's own; see stepscope.measure.loop.Recorded."""
    # By name: it needs torch, and no cell depends on it.
    loop = importlib.import_module(f"{__name__}.measure.loop")
    return loop.Recorded(*given, **named)
