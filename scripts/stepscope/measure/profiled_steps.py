"""A few training steps under a profiler: every phase and part named, each phase timed by the host's
clock as well."""

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from stepscope.axes import option
from stepscope.model import ranges

from . import memory, scratch, steps
from .clock import Around, Clock
from .first_step import before_the_steps, compared, profiled
from .found import Found
from .samples import PhaseTimes, Samples
from .steps import caught
from .telemetry import Telemetry
from .workload import Workload

NAME = "step"  # of the only variant
Profiler = contextlib.AbstractContextManager[Around]


@contextlib.contextmanager
def capture_range(device: str) -> Iterator[Around]:
    """On a GPU a capture range (cudaProfilerStart) with NVTX ranges in it, for a profiler in front
    of the program."""
    if device == "cpu":
        yield contextlib.nullcontext
        return
    torch.cuda.cudart().cudaProfilerStart()
    try:
        yield torch.cuda.nvtx.range
    finally:
        torch.cuda.cudart().cudaProfilerStop()


@contextlib.contextmanager
def torch_profiler(device: str, path: Path) -> Iterator[Around]:
    """torch.profiler (Kineto): operators of the host and, on a GPU, its kernels; written to `path`
    (.json.gz) unless there is an error."""
    with scratch.profiler(device) as profile:
        # Kineto calls "unknown" what is not ASCII.
        yield lambda name: torch.profiler.record_function(name.replace("×", "x"))
    scratch.write_trace(profile, path)


def measure(spec: dict, telemetry: Telemetry, profiler: Profiler) -> tuple[Found, dict | None]:
    """Warm up, then run the spec's steps within `profiler`; the device is waited for around each
    phase.

    (what was found, what the first step contains where the spec's start is `cold`:
    first_step.compared). Running out of memory is `oom` with the rows so far; other errors pass.
    """
    mode = option(spec, "mode")
    device = spec["device"]
    samples = Samples(telemetry)
    found = samples.found
    first = None
    memory.reset_peaks(device)
    try:
        with caught() as outcome:
            before = memory.held(device)
            first = _profiled(spec, samples, profiler)
            found.sizes(NAME, memory.peaks(device, before), mode=mode)
    finally:
        ranges.turn_on(None)
    found.status(NAME, outcome, mode=mode)
    return found, first if outcome.is_ok else None


def _profiled(spec: dict, samples: Samples, profiler: Profiler) -> dict | None:
    """Run all steps; what the very first one contains, of a cold start."""
    mode = option(spec, "mode")
    device = spec["device"]
    is_cold = spec.get("start") == "cold"
    making = scratch.profiler(device, with_host=False) if is_cold else None
    with making or contextlib.nullcontext():
        work = steps.made(spec, NAME, samples.found)
    clock = Clock(device)

    def run(named: Around, warmup: bool) -> None:
        step = partial(_step, work, mode, clock, named)
        samples.run(NAME, step, warmup=warmup, mode=mode, kind="phased")

    plain = partial(run, ranges.named, True)
    # The second one is asked for memory anew: the optimizer made its state at the first one's end.
    cold = [profiled(plain, device) for _ in range(2 if is_cold else 0)]
    for _ in range(spec["warmup"]):
        plain()
    work.capture()
    clock.synchronize()
    with profiler as named:
        ranges.turn_on(named)
        for _ in range(spec["steps"]):
            run(named, False)
        clock.synchronize()
    ranges.turn_on(None)
    if making is None:
        return None
    first, second = cold
    found_first = compared(first, second, profiled(plain, device))
    return found_first | {"before": before_the_steps(making)}


def _step(work: Workload, mode: str, clock: Clock, named: Around) -> PhaseTimes:
    """One step; each phase's range holds the waiting for the device, as its time does."""
    with named("step"):
        work.clear_gradients()
        yield from work.timed(mode, clock, named)
        work.drop_graph()
