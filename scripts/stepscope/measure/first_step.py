"""What the first two training steps of a process spend the host's time on, against a later one, by
torch.profiler.

CUDA loads a kernel's code when the kernel is first launched, within that launch ("lazy loading" in
the CUDA C++ programming guide): what launches take longer in the first step is loading. The same
holds for memory, which the first step takes from the driver, and for matrix products, whose library
sets itself up and chooses an algorithm: a later step calls them as often, so that only what the
first takes longer for them is set-up.
"""

import re
from time import perf_counter
from typing import NamedTuple

import torch

from .found import Call
from .scratch import profiler

# Part -> names of host events, the first pattern that matches counts; the rest of the operators is
# a part of its own.
PARTS = {
    "the profiler itself": (
        r"Activity Buffer Request|Command Buffer Full|Buffer Flush|Resource$|Overhead"
    ),
    "waiting for the device": r"(cuda|cu)\w*(Synchronize|EventQuery)",
    "memory allocation": (
        r"(cuda|cu)(Malloc|Free|HostAlloc|MallocHost|FreeHost|MallocAsync|FreeAsync"
        r"|MemAlloc|MemFree"
        r"|MemGetInfo|MemCreate|MemMap|MemSetAccess|MemAddress\w+)"
        r"|aten::(empty|resize_|new_empty|empty_like|empty_strided)"
    ),
    "module loading": (
        r"Runtime Triggered Module Loading|Lazy Function Loading|(cuda|cu)(LaunchKernel"
        r"|LaunchCooperativeKernel|FuncGet\w+|FuncSet\w+|Module\w+|Library\w+|Kernel\w+"
        r"|GetFuncBySymbol|GetProcAddress"
        r"|OccupancyMaxActive\w+|OccupancyAvailable\w+)"
    ),
    "matrix products": (
        r"aten::(_?addmm|mm|bmm|baddbmm|linear|matmul|_scaled_dot_product\w*|mkldnn\w*)"
    ),
    "compiled code": r"nvrtc\w+|.*([Cc]ompil|[Aa]utotun|Inductor|triton)\w*",
    "other API calls": r"(cuda|cu)[A-Z]\w+",
}
OPERATORS = "operators"
REST = "Python and the rest"


class Profile(NamedTuple):
    """A step's seconds, and (self time in seconds, calls) of each event of the host in it."""

    seconds: float
    events: dict[str, tuple[float, int]]


def profiled(step: Call, device: str) -> Profile:
    """What the host does in a step."""
    with profiler(device) as profile:
        start = perf_counter()
        step()
        seconds = perf_counter() - start
    events: dict[str, tuple[float, int]] = {}
    for event in profile.key_averages():
        if event.device_type == torch.autograd.DeviceType.CPU:
            before, calls = events.get(event.key, (0.0, 0))
            events[event.key] = (before + event.self_cpu_time_total / 1e6, calls + event.count)
    return Profile(seconds, events)


def before_the_steps(profile: torch.profiler.profile) -> list[dict]:
    """What a GPU did while the model and its tokens were made, as rows like those of compared():
    copies and fills by their names, kernels together."""
    found: dict[str, dict] = {}
    for event in profile.key_averages():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            part = event.key if event.key.startswith("Mem") else "kernels"
            row = found.setdefault(part, {"part": part, "first_seconds": 0.0, "calls_first": 0})
            row["first_seconds"] += event.self_device_time_total / 1e6
            row["calls_first"] += event.count
    return list(found.values())


def part_of(name: str) -> str:
    """The part that a host event belongs to."""
    return next((part for part, pattern in PARTS.items() if re.match(pattern, name)), OPERATORS)


def compared(first: Profile, second: Profile, steady: Profile) -> dict:
    """The record's `first`: seconds of the profiled steps and calls, by part.

    Self times of all threads; the last part is what is left of the step's time, Python for the most
    part, and nothing where threads worked side by side for longer than that.
    """
    parts = (*PARTS, OPERATORS)
    rows: dict[str, dict] = {part: {"part": part} for part in (*parts, REST)}
    for which, profile in {"first": first, "second": second, "steady": steady}.items():
        rest = profile.seconds
        for part in parts:
            events = [event for name, event in profile.events.items() if part_of(name) == part]
            spent = sum(seconds for seconds, _ in events)
            calls = sum(calls for _, calls in events)
            rows[part] |= {f"{which}_seconds": spent, f"calls_{which}": calls}
            rest -= spent
        rows[REST][f"{which}_seconds"] = max(0.0, rest)
    return {"parts": [*rows.values()]}
