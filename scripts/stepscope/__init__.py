"""StepScope's library: everything that the programs in scripts/ share; and what a training script
takes from it, `from stepscope import Step, phase, record`."""

from typing import Any

from stepscope.step import Step as Step
from stepscope.step import phase as phase


def record(*given: Any, **named: Any) -> Any:
    """Record steps of a loop that is not one's own; see stepscope.measure.loop.Recorded."""
    from stepscope.measure import loop  # it needs torch, which a script may not have yet

    return loop.Recorded(*given, **named)
