"""A few training steps under a profiler: every phase and part named, each phase timed by the host's
clock as well."""

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from stepscope.axes import MODES, option
from stepscope.measure import memory, scratch
from stepscope.measure.clock import Clock
from stepscope.measure.first_step import compared, profiled
from stepscope.measure.found import Found, Outcome
from stepscope.measure.samples import PhaseTimes, Samples
from stepscope.measure.steps import caught
from stepscope.measure.telemetry import Telemetry
from stepscope.measure.workload import Workload, workload
from stepscope.model import ranges

NAME = "step"  # of the only variant


class Profiler(contextlib.AbstractContextManager):
    """On a GPU opens a capture range (cudaProfilerStart) and NVTX ranges, for a profiler in front
    of the program."""

    def __init__(self, device: str):
        self._cuda = device == "cuda"

    def __enter__(self) -> "Profiler":
        if self._cuda:
            torch.cuda.cudart().cudaProfilerStart()
        return self

    def __exit__(self, *error) -> None:
        if self._cuda:
            torch.cuda.cudart().cudaProfilerStop()

    def range(self, name: str) -> contextlib.AbstractContextManager:
        """A context manager around what `name` stands for."""
        return torch.cuda.nvtx.range(name) if self._cuda else contextlib.nullcontext()


class TorchProfiler(Profiler):
    """torch.profiler (Kineto): operators of the host and, on a GPU, its kernels; written to `path`
    (.json.gz)."""

    def __init__(self, device: str, path: Path):
        super().__init__(device)
        self._path = path

    def __enter__(self) -> "TorchProfiler":
        self._profile = scratch.profiler("cuda" if self._cuda else "cpu")
        self._profile.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._profile.__exit__(*error)
        if error == (None, None, None):
            scratch.write_trace(self._profile, self._path)

    def range(self, name: str) -> contextlib.AbstractContextManager:
        # Kineto calls "unknown" what is not ASCII.
        return torch.profiler.record_function(name.replace("×", "x"))


def measure(spec: dict, telemetry: Telemetry, profiler: Profiler) -> tuple[Found, dict | None]:
    """Warm up, then run the spec's steps with `profiler` on; the device is waited for around each
    phase.

    (what was found, what the first step contains where the spec's start is `cold`:
    first_step.compared). Running out of memory is `oom` with the rows so far; other errors pass.
    """
    mode = option(spec, "mode")
    device = spec["device"]
    samples = Samples(telemetry)
    outcome = Outcome()
    found = Found(1, samples.rows)
    first = None
    memory.reset_peaks(device)
    try:
        with caught(outcome):
            before = memory.held(device)
            first = _profiled(spec, samples, profiler)
            found.sizes(NAME, memory.peaks(device, before), mode=mode, phase=MODES[mode].whole)
    finally:
        ranges.turn_on(None)
    found.status(NAME, outcome.status, outcome.reason, mode=mode)
    return found, first if outcome.status == "ok" else None


def _profiled(spec: dict, samples: Samples, profiler: Profiler) -> dict | None:
    """Run all steps; what the very first one contains, of a cold start."""
    mode = option(spec, "mode")
    device = spec["device"]
    is_cold = spec.get("start") == "cold"
    work = workload(spec)
    clock = Clock(device)

    def run(named: Callable, warmup: bool) -> None:
        step = partial(_step, work, mode, clock, named)
        samples.run(NAME, step, warmup=warmup, mode=mode, kind="phased")

    plain = partial(run, ranges.named, True)
    first = profiled(plain, device) if is_cold else None
    for _ in range(spec["warmup"]):
        plain()
    work.capture()
    clock.synchronize()
    with profiler:
        ranges.turn_on(profiler.range)
        for _ in range(spec["steps"]):
            run(profiler.range, False)
        clock.synchronize()
    ranges.turn_on(None)
    return compared(first, profiled(plain, device)) if first else None


def _step(work: Workload, mode: str, clock: Clock, named: Callable) -> PhaseTimes:
    """One step; each phase's range holds the waiting for the device, as its time does."""
    with named("step"):
        work.clear_gradients()
        for name, phase in work.phases(mode).items():
            with named(name):
                times = clock.time(phase)
            yield name, times
        work.drop_graph()
