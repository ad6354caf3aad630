"""One rung of the optimisation ladder: forward and backward, then the whole step, with what shows that it is right.

Loss and gradients are taken before the first optimizer step, so that they are those of the same weights in every rung.
"""

import json
import math
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from stepscope.measure import memory
from stepscope.measure.clock import Clock
from stepscope.measure.ladder_workload import GraphedWorkload, OptimisedWorkload, workload
from stepscope.measure.series import Series, StoppingRule
from stepscope.measure.steps import Outcome, caught, free_step, phased_step, tidy
from stepscope.measure.telemetry import Telemetry

RUNG_MODES = ("forward-backward", "step")
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
    return Rung([Outcome(mode, "unsupported", reason) for mode in RUNG_MODES])


def measure(spec: dict, telemetry: Telemetry, is_checked: bool = True) -> Rung:
    """Measure both modes, the lighter one first. Where it runs out of memory, both are `oom`, and where the model
    refuses the options, both `unsupported`; other errors pass.

    is_checked: whether loss and gradients are taken, and kernels counted: they are the same in every process.
    """
    rung, device = Rung(), spec["device"]
    work: OptimisedWorkload | None = None
    for mode in RUNG_MODES:
        outcome = Outcome(mode)
        rung.outcomes.append(outcome)
        if rung.outcomes[0].status != "ok":
            outcome.after(rung.outcomes[0])
            continue
        memory.reset_peaks(device)
        with caught(outcome):
            if work is None:
                work = workload(spec)
            _measure_mode(work, mode, spec, telemetry, rung, outcome.rows)
            if is_checked and mode == RUNG_MODES[0]:
                rung.about |= _check(work, mode)
            outcome.peaks = memory.peaks(device)
            if is_checked:
                rung.about |= _count(work, mode, device) | {"counted": mode}
        if outcome.status == "oom":
            outcome.peaks = memory.peaks(device)
        if work is not None:
            tidy(work, device)
    return rung


def _measure_mode(
    work: OptimisedWorkload, mode: str, spec: dict, telemetry: Telemetry, rung: Rung, rows: list[dict]
) -> None:
    """Warm up, capture CUDA graphs, then measure: phased steps of the whole step only, and free steps."""
    clock, is_first = Clock(spec["device"]), mode == RUNG_MODES[0]
    free = partial(free_step, work, mode, clock)
    series = Series(telemetry, rows, {"mode": mode, "kind": "free"})
    series.warm_up(free, spec["warmup"])
    memory.reset_peaks(spec["device"])  # what only the first steps need is not the steady state's peak
    if is_first and isinstance(work, GraphedWorkload):
        rung.about["compile_seconds"] = _capture(work, clock)
    if mode == "step":
        phased = Series(telemetry, rows, {"mode": mode, "kind": "phased"}, first=series.step)
        phased.measure(partial(phased_step, work, mode, clock), StoppingRule.of(spec))
        series.step = phased.step
    series.measure(free, StoppingRule.of(spec))
    if is_first and spec.get("compile", "none") != "none":
        rung.about["compile_seconds"] = _compiling(rows) + (rung.about["compile_seconds"] or 0.0)


def _capture(work: GraphedWorkload, clock: Clock) -> float:
    """Seconds that recording the CUDA graphs takes."""
    start = time.perf_counter()
    work.capture()
    clock.synchronize()
    return time.perf_counter() - start


def _compiling(rows: list[dict]) -> float:
    """Seconds by which the first step, in which everything is compiled, takes longer than a later one."""
    first, *later = (row["seconds"] for row in rows)
    return max(0.0, first - statistics.median(later)) if later else first


def _whole(work: OptimisedWorkload, phases) -> None:
    """One step as a training loop runs it."""
    work.clear_gradients()
    for phase in phases:
        phase()


def _check(work: OptimisedWorkload, mode: str) -> dict:
    """Loss and gradients of one more forward and backward pass: the loss, the gradients' 2-norm, some of their
    entries, the same ones whatever the options. Nothing of a model that draws random numbers, as for dropout: each pass
    gives others."""
    before = _random_state()
    _whole(work, work.phases(mode).values())
    if _random_state() != before:
        work.drop_graph()
        return {}
    gradients = [parameter.grad for parameter in work.parameters if parameter.grad is not None]
    squares = math.fsum(float(gradient.norm(dtype=torch.float32)) ** 2 for gradient in gradients)
    found = {
        "loss": float(work.loss.detach()),
        "gradient_norm": math.sqrt(squares),
        "gradient_sample": sample(gradients, SAMPLED),
    }
    work.drop_graph()
    return found


def _random_state() -> list[bytes]:
    """Of torch's generators, of the processor and, where it is in use, of the GPU."""
    states = [torch.get_rng_state()] + ([torch.cuda.get_rng_state()] if torch.cuda.is_initialized() else [])
    return [state.numpy().tobytes() for state in states]


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
