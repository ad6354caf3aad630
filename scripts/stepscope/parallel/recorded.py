"""What torch.profiler saw of a rank's steps, as intervals: kernels that compute and collectives.

On a GPU these are its kernels and copies; NCCL has its name in those of its kernels. On a CPU the
operators that the program itself calls stand for kernels, and gloo says in its threads what it
does.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from stepscope.measure import scratch
from stepscope.measure.clock import Clock
from stepscope.trace.apart import Span, Step

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")


@dataclass(frozen=True)
class Recording:
    """Steps of a rank. clock: seconds of each by the host's clock. outside: seconds of kernels that
    the GPU's clock, which differs from the host's, puts into none of them."""

    steps: list[Step]
    clock: list[float]
    outside: float


def recorded(step: Callable[[], None], count: int, device: str, meet: Callable) -> Recording:
    """So many steps under the profiler, each waited for; before each all ranks meet. It looks at
    the GPU alone where there is one: to record the host's operators, too, would slow down what
    launches limit."""
    clock = Clock(device)
    windows = []
    times = []
    with scratch.profiler(device, with_host=False, acc_events=True) as seen:  # else it warns
        for _ in range(count):
            clock.synchronize()
            meet(0.0)
            begin = time.time_ns()
            times.append(clock.time(step))
            windows.append((begin, time.time_ns()))
    content = scratch.trace_of(seen)
    base = content.get("baseTimeNanoseconds", 0)
    events = [event for event in content["traceEvents"] if event.get("ph") == "X"]
    kernels, collectives = on_gpu(events) if device == "cuda" else on_cpu(events, os.getpid())
    steps = [
        cut(kernels, collectives, (begin - base) / 1e9, (end - base) / 1e9)
        for begin, end in windows
    ]
    inside = sum(_seconds(one.kernels) for one in steps)
    # On a CPU there is but one clock, and what runs between two steps is how ranks meet.
    return Recording(steps, times, _seconds(kernels) - inside if device == "cuda" else 0.0)


def on_gpu(events: list[dict]) -> tuple[list[Span], list[Span]]:
    """(kernels and copies, collectives) of a Chrome trace, in the order of their starts."""
    found = _spans([event for event in events if event.get("cat") in ON_GPU])
    names = {span.name for span in found}
    sends = {name for name in names if "nccl" in name.lower()}
    kernels = [span for span in found if span.name not in sends]
    return kernels, [span for span in found if span.name in sends]


def on_cpu(events: list[dict], thread: int) -> tuple[list[Span], list[Span]]:
    """(operators of a thread that no other one calls, gloo's collectives)."""
    own = [each for each in events if (each.get("cat"), each.get("tid")) == ("cpu_op", thread)]
    kernels: list[Span] = []
    for span in _spans(own):
        if not kernels or span.start >= kernels[-1].end:
            kernels.append(span)
    return kernels, _spans([each for each in events if each["name"].startswith("gloo:")])


def cut(kernels: list[Span], collectives: list[Span], start: float, end: float) -> Step:
    """The step between two moments: what has its middle there."""

    def within(spans: list[Span]) -> list[Span]:
        return [span for span in spans if start <= (span.start + span.end) / 2 < end]

    return Step(start, end, within(kernels), within(collectives))


def _spans(events: list[dict]) -> list[Span]:
    """Events have `ts` and `dur` in microseconds; of two that start at once the longer is first."""
    ordered = sorted(events, key=lambda event: (event["ts"], -event["dur"]))
    return [
        Span(event["name"], event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6)
        for event in ordered
    ]


def _seconds(spans: list[Span]) -> float:
    return sum(span.end - span.start for span in spans)
