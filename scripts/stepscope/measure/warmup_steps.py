"""Training steps from the very first one on, in a process in which nothing ran before, and what the first contains.

Every step is phased: the device is waited for after each phase, and gradients are cleared outside the phases.

What a step spends the host's time on is told by torch.profiler, for the first one against a later one. CUDA loads a
kernel's code when the kernel is first launched, within that launch ("lazy loading" in the CUDA C++ programming guide):
what launches take longer in the first step is loading. The same holds for memory, which the first step takes from the
driver, and for matrix products, whose library sets itself up and chooses an algorithm: a later step calls them as
often, so that only what the first takes longer for them is set-up.
"""

import contextlib
import re
import resource
import time
from functools import partial

import torch

from stepscope.measure import memory
from stepscope.measure.clock import Clock
from stepscope.measure.series import FixedNumber, Series
from stepscope.measure.steps import Outcome, Workload, caught, phased_step
from stepscope.measure.telemetry import Telemetry

MODE = "step"
# Part -> names of host events, the first pattern that matches counts; the rest of the operators is a part of its own.
PARTS = {
    "the profiler itself": r"Activity Buffer Request|Command Buffer Full|Buffer Flush|Resource$|Overhead",
    "waiting for the device": r"(cuda|cu)\w*(Synchronize|EventQuery)",
    "memory allocation": r"(cuda|cu)(Malloc|Free|HostAlloc|MallocHost|FreeHost|MallocAsync|FreeAsync|MemAlloc|MemFree"
    r"|MemGetInfo|MemCreate|MemMap|MemSetAccess|MemAddress\w+)|aten::(empty|resize_|new_empty|empty_like|empty_strided)",
    "module loading": r"Runtime Triggered Module Loading|Lazy Function Loading|(cuda|cu)(LaunchKernel"
    r"|LaunchCooperativeKernel|FuncGet\w+|FuncSet\w+|Module\w+|Library\w+|Kernel\w+|GetFuncBySymbol|GetProcAddress"
    r"|OccupancyMaxActive\w+|OccupancyAvailable\w+)",
    "matrix products": r"aten::(_?addmm|mm|bmm|baddbmm|linear|matmul|_scaled_dot_product\w*|mkldnn\w*)",
    "compiled code": r"nvrtc\w+|.*([Cc]ompil|[Aa]utotun|Inductor|triton)\w*",
    "other API calls": r"(cuda|cu)[A-Z]\w+",
}
OPERATORS, REST = "operators", "Python and the rest"
LARGEST = 12


def measure(spec: dict, telemetry: Telemetry) -> tuple[Outcome, dict | None]:
    """Warm up, then measure exactly the spec's steps; (outcome, what the first step contains or None).

    With `first=profiled` in the spec, torch.profiler records a step before all of them and one more after them.
    Running out of memory is an `oom` outcome with the rows so far; other errors pass through.
    """
    outcome, profiled, device = Outcome(MODE), None, spec["device"]
    memory.reset_peaks(device)
    with caught(outcome):
        step = partial(phased_step, Workload(spec), MODE, Clock(device))
        first = Profile(device) if "first" in spec else None
        if first:
            with first:
                step()
        series = Series(telemetry, outcome.rows, {"mode": MODE, "kind": "phased"}, first=1 if first else 0)
        series.warm_up(step, spec["warmup"])
        series.measure(step, FixedNumber(spec["steps"]))
        if first:
            steady = Profile(device)
            with steady:
                step()
            profiled = compared(first, steady)
    outcome.peaks = memory.peaks(device)
    telemetry.read()
    return outcome, profiled


class Profile(contextlib.AbstractContextManager):
    """Records what the host does in its `with` block: seconds, self time by event, page faults."""

    def __init__(self, device: str):
        kinds = torch.profiler.ProfilerActivity
        self._profile = torch.profiler.profile(activities=[kinds.CPU, *([kinds.CUDA] if device == "cuda" else [])])

    def __enter__(self) -> "Profile":
        self._profile.__enter__()
        self._faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error) -> None:
        self.seconds = time.perf_counter() - self._start
        self.page_faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - self._faults
        self._profile.__exit__(*error)
        host = torch.autograd.DeviceType.CPU
        self.events: dict[str, tuple[float, int]] = {}
        if error == (None, None, None):
            for event in self._profile.key_averages():
                if event.device_type == host:
                    seconds, calls = self.events.get(event.key, (0.0, 0))
                    self.events[event.key] = (seconds + event.self_cpu_time_total / 1e6, calls + event.count)


def part_of(name: str) -> str:
    """The part that a host event belongs to."""
    return next((part for part, pattern in PARTS.items() if re.match(pattern, name)), OPERATORS)


def compared(first: Profile, steady: Profile) -> dict:
    """The record's `first`: seconds of both profiled steps, by part and for the largest differences by event.

    Self times of all threads; the last part is what is left of the step's time, Python for the most part.
    """
    names = sorted({*first.events, *steady.events})
    events = [{"name": name, "part": part_of(name)} | _both(first, steady, [name]) for name in names]
    parts = []
    for part in (*PARTS, OPERATORS):
        parts.append(
            {"part": part} | _both(first, steady, [event["name"] for event in events if event["part"] == part])
        )
    rest = {
        f"{which}_seconds": profile.seconds - sum(part[f"{which}_seconds"] for part in parts)
        for which, profile in (("first", first), ("steady", steady))
    }
    parts.append({"part": REST} | rest | {"calls_first": None, "calls_steady": None})
    events.sort(key=lambda event: event["steady_seconds"] - event["first_seconds"])
    return {
        "profiled": {"first_seconds": first.seconds, "steady_seconds": steady.seconds},
        "parts": parts,
        "page_faults": {"first": first.page_faults, "steady": steady.page_faults},
        "largest": events[:LARGEST],
    }


def _both(first: Profile, steady: Profile, names: list[str]) -> dict:
    found = {}
    for which, profile in (("first", first), ("steady", steady)):
        events = [profile.events.get(name, (0.0, 0)) for name in names]
        found |= {f"{which}_seconds": sum(event[0] for event in events), f"calls_{which}": sum(e[1] for e in events)}
    return found
