"""Training steps from the very first one on, in a process in which nothing ran before.

Every step is phased: the device is waited for after each phase, and gradients are cleared outside the phases.
"""

from functools import partial

from stepscope.measure import first_step, memory
from stepscope.measure.clock import Clock
from stepscope.measure.series import FixedNumber, Series
from stepscope.measure.steps import Outcome, Workload, phased_step
from stepscope.measure.telemetry import Telemetry

MODE = "step"


def measure(spec: dict, telemetry: Telemetry) -> tuple[Outcome, dict | None]:
    """Warm up, then measure exactly the spec's steps; (outcome, what the first step contains or None).

    With `first=profiled` in the spec, torch.profiler records a step before all of them and one more after them.
    Running out of memory is an `oom` outcome with the rows so far; other errors pass through.
    """
    outcome, profiled, device = Outcome(MODE), None, spec["device"]
    memory.reset_peaks(device)
    with memory.caught(outcome):
        step = partial(phased_step, Workload(spec), MODE, Clock(device))
        first = first_step.Profile(device) if "first" in spec else None
        if first:
            with first:
                step()
        series = Series(telemetry, outcome.rows, {"mode": MODE, "kind": "phased"}, first=1 if first else 0)
        series.warm_up(step, spec["warmup"])
        series.measure(step, FixedNumber(spec["steps"]))
        if first:
            steady = first_step.Profile(device)
            with steady:
                step()
            profiled = first_step.compared(first, steady)
    outcome.peaks = memory.peaks(device)
    telemetry.read()
    return outcome, profiled
