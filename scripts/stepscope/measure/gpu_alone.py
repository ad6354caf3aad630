"""What the host cannot change of a step on a GPU: its time replayed from a CUDA graph, launches and
kernels, the union of the kernels' intervals, and the energy. On a CPU the number of operators.

None of these may fail a cell: what cannot be had is left out, with the reason. But a file that
cannot be written does: the next run may have the room.
"""

import gc
import re
import time
from collections import Counter
from typing import NamedTuple

import torch

from stepscope.axes import MODES

from . import memory, steps
from .clock import Clock, time_in_a_row
from .found import Call, Found
from .samples import Samples
from .scratch import profiler, trace_of
from .telemetry import Telemetry
from .workload import Workload, aside

REPLAYS = 10
WARM_REPLAYS = 3
LEAST_REPLAYS = 3
PROFILED = 3  # steps
LEAST_SECONDS = 1.0  # of a series whose energy is read
_LAUNCHES = re.compile(r"(cuda|cu)(LaunchKernel|LaunchCooperativeKernel|GraphLaunch)")


def host_free(work: Workload, name: str, samples: Samples, seconds: float) -> None:
    """Capture the whole training step, optimizer included, and time replays of it; fewer where
    `seconds` are over.

    The optimizer's step counts are constants in the graph, which changes no time. What it does is
    not undone: the weights go on from there.
    """
    try:
        stream = torch.cuda.current_stream()
        gradients = [parameter.grad for parameter in work.parameters]
        try:
            for took in _replayed(_captured(work), seconds):
                samples.add(name, MODES["step"].whole, took, mode="step", kind="host-free")
        finally:
            torch.cuda.set_stream(stream)  # a capture that fails may not have given it back
            for parameter, gradient in zip(work.parameters, gradients, strict=True):
                parameter.grad = gradient
            Workload.drop_graph(work)
    except Exception as error:
        # The end of a capture that has failed says no more than that.
        samples.found.status(name, steps.why(work.failed or error), mode="host-free")
    else:
        samples.found.status(name, mode="host-free")
    gc.collect()
    memory.release("cuda")


def _captured(work: Workload) -> torch.cuda.CUDAGraph:
    """The whole step as a graph."""
    step = work.captured()
    work.forget()
    with aside():
        step()
        work.forget()
    memory.release("cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def _replayed(graph: torch.cuda.CUDAGraph, seconds: float) -> list[float]:
    """Seconds of each replay, after a few that are not kept."""
    start = time.perf_counter()
    for _ in range(WARM_REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    each = (time.perf_counter() - start) / WARM_REPLAYS
    return time_in_a_row(graph.replay, max(LEAST_REPLAYS, min(REPLAYS, int(seconds / each))))


def energy(run: Call, name: str, found: Found, telemetry: Telemetry, made: int = 1) -> None:
    """Joules a step, by NVML's counter over as many steps as take a second; nothing without the
    counter. made: steps that a run makes.

    It is read as it moves, some ten times a second. What the idle GPU took beside the steps goes
    off.
    """
    torch.cuda.synchronize()
    before = _moved(telemetry)
    if before is None:
        return
    start = time.perf_counter()
    count = 0
    while time.perf_counter() - start < LEAST_SECONDS:
        run()
        count += made
    torch.cuda.synchronize()
    ran = time.perf_counter() - start
    time.sleep(0.2)  # the counter is late
    after = _moved(telemetry)
    later = _moved(telemetry)
    if after is None or later is None:
        return
    idle_power = (later.joules - after.joules) / (later.at - after.at)
    idle = idle_power * (after.at - before.at - ran)
    found.value(name, "energy", "J", (after.joules - before.joules - idle) / count, mode="step")


class _Reading(NamedTuple):
    """The counter's joules, and the host's clock in seconds as they were read."""

    at: float
    joules: float


def _moved(telemetry: Telemetry) -> _Reading | None:
    """The counter as it moves next; None if it does not within a second."""
    first = telemetry.energy()
    start = time.perf_counter()
    while first is not None:
        now = time.perf_counter()
        if now - start >= 1:
            return None
        joules = telemetry.energy()
        if joules is not None and joules != first:
            return _Reading(now, joules)
    return None


def counted(work: Workload, name: str, samples: Samples, device: str) -> None:
    """Launches, kernels and the busy time of a few steps under torch.profiler; on a CPU the
    operators of one. It slows down all that comes after it in the process."""
    try:
        work.use()
        count = PROFILED if device == "cuda" else 1
        events = _profiled(work, count, device)
        for quantity, number in counts(events, device).items():
            samples.found.value(name, quantity, "1", number / count, once=True, mode="step")
        if device == "cuda":
            for took in busy(events, count):
                samples.add(name, MODES["step"].whole, took, mode="step", kind="busy")
    except Exception as error:
        samples.found.status(name, steps.why(error), mode="busy")
    work.count()
    steps.tidy(work, device)


def _profiled(work: Workload, count: int, device: str) -> list[dict]:
    """The events of so many steps, after one that is not profiled."""
    step = steps.free(work)
    clock = Clock(device)
    step()
    work.drop_graph()
    clock.synchronize()
    with profiler(device, with_host=False) as profile:
        for _ in range(count):
            step()
            work.drop_graph()
        clock.synchronize()
    return trace_of(profile)["traceEvents"]


def counts(events: list[dict], device: str) -> dict[str, int]:
    """Kernels and launches among the events of a Chrome trace as torch.profiler writes it; of a
    CPU's the operators."""
    whole = [event for event in events if event.get("ph") == "X"]
    kinds = Counter(event.get("cat") for event in whole)
    if device == "cpu":
        return {"operators": kinds["cpu_op"]}
    launches = [event for event in whole if _LAUNCHES.match(event.get("name", ""))]
    return {"kernels": kinds["kernel"], "launches": len(launches)}


def busy(events: list[dict], count: int) -> list[float]:
    """Seconds of the union of the GPU's intervals, kernels and copies, in each of so many equal
    steps; where their number is no multiple, the mean step's alone. Events have `ts` and `dur` in
    microseconds."""
    work = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    spans = sorted((event["ts"], event["ts"] + event["dur"]) for event in work)
    each, left = divmod(len(spans), count)
    if left:
        return [union(spans) / count / 1e6]
    # Nothing at all ran: there are no steps to tell apart.
    starts = range(0, len(spans), each) if each else ()
    return [union(spans[start : start + each]) / 1e6 for start in starts]


def union(spans: list[tuple[float, float]]) -> float:
    """Length of the union of intervals (start, end), which are sorted."""
    length = 0.0
    reached = float("-inf")
    for start, end in spans:
        length += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return length
