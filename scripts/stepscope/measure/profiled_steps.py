"""A few training steps under a profiler: every phase and part named, each phase timed by the host's clock as well."""

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from stepscope.axes import option
from stepscope.measure import memory
from stepscope.measure.clock import Clock
from stepscope.measure.series import FixedNumber, PhaseTimes, Series
from stepscope.measure.steps import Outcome, Workload, caught
from stepscope.measure.telemetry import Telemetry
from stepscope.model import ranges


class Profiler(contextlib.AbstractContextManager):
    """On inside its `with` block. This one records nothing by itself: a profiler in front of the program does.

    On a GPU it opens a capture range (cudaProfilerStart) and NVTX ranges.
    """

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
    """torch.profiler (Kineto): operators of the host and, on a GPU, its kernels; written to `path` (.json.gz)."""

    def __init__(self, device: str, path: Path):
        super().__init__(device)
        self._path = path

    def __enter__(self) -> "TorchProfiler":
        kinds = torch.profiler.ProfilerActivity
        self._profile = torch.profiler.profile(activities=[kinds.CPU, *([kinds.CUDA] if self._cuda else [])])
        self._profile.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._profile.__exit__(*error)
        if error == (None, None, None):
            self._profile.export_chrome_trace(str(self._path))

    def range(self, name: str) -> contextlib.AbstractContextManager:
        return torch.profiler.record_function(name.replace("×", "x"))  # Kineto calls "unknown" what is not ASCII


def measure(spec: dict, telemetry: Telemetry, profiler: Profiler) -> Outcome:
    """Warm up, then run the spec's steps with `profiler` on; the device is waited for around each phase.

    Running out of memory is an `oom` outcome with the rows so far; other errors pass through.
    """
    mode, device = option(spec, "mode"), spec["device"]
    outcome = Outcome(mode)
    memory.reset_peaks(device)
    try:
        with caught(outcome):
            workload, clock = Workload(spec), Clock(device)
            series = Series(telemetry, outcome.rows, {"mode": mode, "kind": "phased"})
            series.warm_up(partial(_step, workload, mode, clock, ranges.named), spec["warmup"])
            clock.synchronize()
            with profiler:
                ranges.turn_on(profiler.range)
                series.measure(partial(_step, workload, mode, clock, profiler.range), FixedNumber(spec["steps"]))
                clock.synchronize()
    finally:
        ranges.turn_on(None)
    outcome.peaks = memory.peaks(device)
    return outcome


def _step(workload: Workload, mode: str, clock: Clock, named: Callable) -> PhaseTimes:
    """One step; each phase's range holds the waiting for the device, as its time does."""
    with named("step"):
        workload.clear_gradients()
        for name, phase in workload.phases(mode).items():
            with named(name):
                times = clock.time(phase)
            yield name, times
        workload.drop_graph()
