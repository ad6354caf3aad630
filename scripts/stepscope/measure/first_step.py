"""What the first training step of a process spends the host's time on, against a later one, by torch.profiler.

CUDA loads a kernel's code when the kernel is first launched, within that launch ("lazy loading" in the CUDA C++
programming guide): what launches take longer in the first step is loading. The same holds for memory, which the first
step takes from the driver, and for matrix products, whose library sets itself up and chooses an algorithm: a later step
calls them as often, so that only what the first takes longer for them is set-up.
"""

import contextlib
import re
import resource
import time
from collections.abc import Callable

import torch

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


class Profile(contextlib.AbstractContextManager):
    """Records what the host does in its `with` block: seconds, self time by event, page faults."""

    def __init__(self, device: str):
        kinds = torch.profiler.ProfilerActivity
        self._profile = torch.profiler.profile(activities=[kinds.CPU, *([kinds.CUDA] if device == "cuda" else [])])

    def record(self, run: Callable[[], object]) -> "Profile":
        """Record what `run` does; returns itself."""
        with self:
            run()
        return self

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
    profiles = {"first": first, "steady": steady}

    def both(names: list[str]) -> dict:
        found = {}
        for which, profile in profiles.items():
            events = [profile.events.get(name, (0.0, 0)) for name in names]
            found |= {
                f"{which}_seconds": sum(one[0] for one in events),
                f"calls_{which}": sum(one[1] for one in events),
            }
        return found

    names = sorted({*first.events, *steady.events})
    events = [{"name": name, "part": part_of(name)} | both([name]) for name in names]
    parts = [{"part": part} | both([name for name in names if part_of(name) == part]) for part in (*PARTS, OPERATORS)]
    seconds = {f"{which}_seconds": profile.seconds for which, profile in profiles.items()}
    rest = {key: value - sum(part[key] for part in parts) for key, value in seconds.items()}
    parts.append({"part": REST, "calls_first": None, "calls_steady": None} | rest)
    events.sort(key=lambda event: event["steady_seconds"] - event["first_seconds"])
    faults = {which: profile.page_faults for which, profile in profiles.items()}
    return {"profiled": seconds, "parts": parts, "page_faults": faults, "largest": events[:LARGEST]}
