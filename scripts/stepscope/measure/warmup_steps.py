"""Training steps from the very first one on, in a process in which nothing ran before.

Every step is phased: the device is waited for after each phase, and gradients are cleared outside the phases.
"""

from stepscope.measure import first_step, memory
from stepscope.measure.clock import Clock
from stepscope.measure.steps import Outcome, Workload
from stepscope.measure.telemetry import Telemetry

MODE = "step"


def measure(spec: dict, telemetry: Telemetry) -> tuple[Outcome, dict | None]:
    """Warm up, then measure exactly the spec's steps; (outcome, what the first step contains or None).

    With `first=profiled` in the spec, torch.profiler records a step before all of them and one more after them.
    Running out of memory is an `oom` outcome with the rows so far; other errors pass through.
    """
    outcome, profiled = Outcome(MODE), None
    memory.reset_peaks(spec["device"])
    try:
        steps = _Steps(Workload(spec), spec["device"], telemetry, outcome)
        first = first_step.Profile(spec["device"]) if "first" in spec else None
        if first:
            with first:
                steps.unrecorded()
        start = 1 if first else 0
        for step in range(start, start + spec["warmup"] + spec["steps"]):
            steps.one(step, step < start + spec["warmup"])
        if first:
            steady = first_step.Profile(spec["device"])
            with steady:
                steps.unrecorded()
            profiled = first_step.compared(first, steady)
    except Exception as error:
        if not memory.is_out_of_memory(error):
            raise
        outcome.status, outcome.reason = "oom", memory.reason(error)
    outcome.peaks = memory.peaks(spec["device"])
    telemetry.read()
    return outcome, profiled


class _Steps:
    """The steps of one workload."""

    def __init__(self, workload: Workload, device: str, telemetry: Telemetry, outcome: Outcome):
        self._workload, self._clock, self._telemetry, self._outcome = workload, Clock(device), telemetry, outcome

    def one(self, step: int, is_warmup: bool) -> None:
        """A step whose phases become samples."""
        before = self._telemetry.read()
        for phase, (seconds, event_seconds) in self.unrecorded().items():
            place = {"mode": MODE, "kind": "phased", "step": step, "phase": phase, "warmup": is_warmup}
            self._outcome.rows.append(place | {"seconds": seconds, "event_seconds": event_seconds} | before)

    def unrecorded(self) -> dict[str, tuple[float, float | None]]:
        """A step; the time of each phase."""
        self._workload.clear_gradients()
        times = {name: self._clock.time(phase) for name, phase in self._workload.phases(MODE).items()}
        self._workload.drop_graph()
        return times
