"""A few training steps under a profiler: every phase and part named, each phase timed by the host's clock as well."""

from collections.abc import Callable

from stepscope.measure import memory
from stepscope.measure.clock import Clock
from stepscope.measure.profilers import Profiler
from stepscope.measure.steps import Outcome, Workload
from stepscope.measure.telemetry import Telemetry
from stepscope.model import ranges


def measure(spec: dict, telemetry: Telemetry, profiler: Profiler) -> Outcome:
    """Warm up, then run the spec's steps with `profiler` on; the device is waited for around each phase.

    Running out of memory is an `oom` outcome with the rows so far; other errors pass through.
    """
    mode, device = spec.get("mode", "step"), spec["device"]
    outcome = Outcome(mode)
    memory.reset_peaks(device)
    try:
        workload, clock = Workload(spec), Clock(device)
        for step in range(spec["warmup"]):
            _step(workload, mode, clock, ranges.named, step, True, telemetry, outcome.rows)
        clock.synchronize()
        with profiler:
            ranges.turn_on(profiler.range)
            for step in range(spec["warmup"], spec["warmup"] + spec["steps"]):
                _step(workload, mode, clock, profiler.range, step, False, telemetry, outcome.rows)
            clock.synchronize()
    except Exception as error:
        if not memory.is_out_of_memory(error):
            raise
        outcome.status, outcome.reason = "oom", memory.reason(error)
    finally:
        ranges.turn_on(None)
    outcome.peaks = memory.peaks(device)
    return outcome


def _step(
    workload: Workload,
    mode: str,
    clock: Clock,
    named: Callable,
    step: int,
    is_warmup: bool,
    telemetry: Telemetry,
    rows: list[dict],
) -> None:
    """One step; each phase's range holds the waiting for the device, as its time does."""
    before = telemetry.read()
    with named("step"):
        workload.clear_gradients()
        for name, phase in workload.phases(mode).items():
            with named(name):
                seconds, event_seconds = clock.time(phase)
            row = {"mode": mode, "kind": "phased", "step": step, "phase": name, "warmup": is_warmup}
            rows.append(row | {"seconds": seconds, "event_seconds": event_seconds} | before)
        workload.drop_graph()
