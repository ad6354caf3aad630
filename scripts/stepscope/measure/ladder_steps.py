"""One rung of the optimisation ladder: forward and backward, then the whole step, with what shows that it is right.

Loss and gradients are taken before the first optimizer step, so that they are those of the same weights in every rung.
"""

import contextlib
import json
import math
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from stepscope.measure import memory
from stepscope.measure.clock import Clock
from stepscope.measure.ladder_workload import GraphedWorkload, OptimisedWorkload, workload
from stepscope.measure.steps import FREE_STEP, Outcome
from stepscope.measure.summary import StoppingRule
from stepscope.measure.telemetry import Telemetry

MODES = ("forward-backward", "step")
SAMPLED = 2048  # gradient entries that are kept, at even distances over all parameters
_LAUNCHES = re.compile(r"(cuda|cu)(LaunchKernel|LaunchCooperativeKernel|GraphLaunch)")


@dataclass
class Rung:
    """What a cell gave: an outcome for each mode, and the record's `ladder` part."""

    outcomes: list[Outcome] = field(default_factory=list)
    about: dict = field(
        default_factory=lambda: (
            dict.fromkeys(["compile_seconds", "kernels", "launches", "operators", "counted", "loss", "gradient_norm"])
            | {"gradient_sample": []}
        )
    )


def unsupported(reason: str) -> Rung:
    """A rung that this machine cannot climb."""
    return Rung([Outcome(mode, "unsupported", reason) for mode in MODES])


def measure(spec: dict, telemetry: Telemetry) -> Rung:
    """Measure both modes, the lighter one first. Where it runs out of memory, both are `oom`; other errors pass."""
    rung, device = Rung(), spec["device"]
    work: OptimisedWorkload | None = None
    for mode in MODES:
        outcome = Outcome(mode)
        rung.outcomes.append(outcome)
        if rung.outcomes[0].status == "oom":
            outcome.status, outcome.reason = "oom", f"{MODES[0]} ran out of memory before it"
            continue
        try:
            memory.reset_peaks(device)
            if work is None:
                work = workload(spec)
            series = _Series(work, mode, spec, telemetry, outcome)
            series.warm_up(rung.about if mode == MODES[0] else None)
            if mode == "step":
                series.measure("phased")
            series.measure("free")
            if mode == MODES[0]:
                if spec.get("compile", "none") != "none":
                    rung.about["compile_seconds"] = _compiling(outcome.rows) + (rung.about["compile_seconds"] or 0.0)
                rung.about |= _check(work, mode)
            outcome.peaks = memory.peaks(device)
            rung.about |= _count(work, mode, device) | {"counted": mode}
        except Exception as error:
            if not memory.is_out_of_memory(error):
                raise
            outcome.status, outcome.reason = "oom", memory.reason(error)
            outcome.peaks = memory.peaks(device)
        if work is not None:
            _tidy(work, device)
    return rung


def _compiling(rows: list[dict]) -> float:
    """Seconds by which the first step, in which everything is compiled, takes longer than a later one."""
    first, *later = (row["seconds"] for row in rows)
    return max(0.0, first - statistics.median(later)) if later else first


class _Series:
    """Steps of one mode; every sample is appended to the outcome at once."""

    def __init__(self, work: OptimisedWorkload, mode: str, spec: dict, telemetry: Telemetry, outcome: Outcome):
        self._work, self._mode, self._spec, self._telemetry, self._outcome = work, mode, spec, telemetry, outcome
        self._clock = Clock(spec["device"])
        self._step = 0

    def warm_up(self, about: dict | None) -> None:
        """The spec's warm-up steps, and with `about` the capture of CUDA graphs, whose seconds it notes there."""
        for _ in range(self._spec["warmup"]):
            self._one("free", True)
        memory.reset_peaks(self._spec["device"])  # what only the first steps need is not the steady state's peak
        if about is not None and isinstance(self._work, GraphedWorkload):
            start = time.perf_counter()
            self._work.capture()
            self._clock.synchronize()
            about["compile_seconds"] = time.perf_counter() - start

    def measure(self, kind: str) -> None:
        """Steps until the stopping rule is content."""
        spec = self._spec
        rule = StoppingRule(spec["steps"], spec["max_steps"], spec["max_seconds"])
        series: dict[str, list[float]] = {}
        while not (series and rule.enough(list(series.values()))):
            for phase, seconds in self._one(kind, False).items():
                series.setdefault(phase, []).append(seconds)

    def _one(self, kind: str, warmup: bool) -> dict[str, float]:
        """One step; seconds of each phase, or of the whole."""
        before = self._telemetry.read()
        phases = self._work.phases(self._mode)
        if kind == "phased":
            self._work.clear_gradients()
            times = {name: self._clock.time(phase) for name, phase in phases.items()}
        else:
            times = {FREE_STEP[self._mode]: self._clock.time(lambda: _whole(self._work, phases.values()))}
        self._work.drop_graph()
        for phase, (seconds, event_seconds) in times.items():
            place = {"mode": self._mode, "kind": kind, "step": self._step, "phase": phase, "warmup": warmup}
            self._outcome.rows.append(place | {"seconds": seconds, "event_seconds": event_seconds} | before)
        self._step += 1
        return {phase: seconds for phase, (seconds, _) in times.items()}


def _whole(work: OptimisedWorkload, phases) -> None:
    """One step as a training loop runs it."""
    work.clear_gradients()
    for phase in phases:
        phase()


def _check(work: OptimisedWorkload, mode: str) -> dict:
    """Loss and gradients of one more forward and backward pass: the loss, the gradients' 2-norm, some of their
    entries, the same ones whatever the options."""
    _whole(work, work.phases(mode).values())
    gradients = [parameter.grad for parameter in work.parameters]
    squares = math.fsum(float(gradient.norm(dtype=torch.float32)) ** 2 for gradient in gradients)
    found = {
        "loss": float(work.loss.detach()),
        "gradient_norm": math.sqrt(squares),
        "gradient_sample": sample(gradients, SAMPLED),
    }
    work.drop_graph()
    return found


def sample(tensors: list[torch.Tensor], count: int) -> list[float]:
    """Entries at even distances over all tensors laid end to end: at most `count`."""
    total = sum(tensor.numel() for tensor in tensors)
    places = sorted({index * total // count for index in range(count)})
    found, start = [], 0
    for tensor in tensors:
        end = start + tensor.numel()
        here = [place - start for place in places if start <= place < end]
        if here:
            found += tensor.flatten()[torch.tensor(here, device=tensor.device)].float().tolist()
        start = end
    return found


def _count(work: OptimisedWorkload, mode: str, device: str) -> dict:
    """Kernels of one step and the host's launches on a GPU; operators on a CPU. By torch.profiler."""
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CUDA if device == "cuda" else kinds.CPU]) as profile:
        _whole(work, work.phases(mode).values())
        Clock(device).synchronize()
    work.drop_graph()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
    return counts(events, device)


def counts(events: list[dict], device: str) -> dict:
    """Kernels, launches and operators among the events of a Chrome trace as torch.profiler writes it."""

    def number(keep: Callable[[dict], object]) -> int:
        return sum(1 for event in events if event.get("ph") == "X" and keep(event))

    if device == "cpu":
        return {"operators": number(lambda event: event.get("cat") == "cpu_op")}
    return {
        "kernels": number(lambda event: event.get("cat") == "kernel"),
        "launches": number(lambda event: _LAUNCHES.match(event.get("name", ""))),
    }


def _tidy(work: OptimisedWorkload, device: str) -> None:
    """Leave no gradients or graph of this mode to the next one's peak."""
    with contextlib.suppress(torch.OutOfMemoryError):
        work.drop_graph()
        work.clear_gradients()
    memory.release(device)
