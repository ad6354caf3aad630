"""What torch.profiler saw of a rank's steps, as intervals: kernels that compute and collectives.

On a GPU these are its kernels and copies; NCCL has its name in those of its kernels. On a CPU the
operators that the program itself calls stand for kernels, and gloo says in its threads what it
does.
"""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from stepscope.measure import scratch
from stepscope.trace.apart import Span, Step

from .place import Place

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
PROFILED = 3  # steps


@dataclass(frozen=True)
class Recording:
    """Steps of a rank. clock: seconds of one by the host's clock. outside: seconds of kernels a
    step that the GPU's clock, which differs from the host's, puts into none of them."""

    steps: list[Step]
    clock: float
    outside: float


def recorded(step: Callable[[], None], place: Place) -> Recording:
    """A few steps under the profiler, each waited for; before each all ranks meet. It looks at
    the GPU alone where there is one: to record the host's operators, too, would slow down what
    launches limit."""
    windows = []
    # Without acc_events it warns.
    with scratch.profiler(place.device, with_host=False, acc_events=True) as seen:
        for _ in range(PROFILED):
            place.clock.synchronize()
            place.agreed()
            windows.append((time.time_ns(), place.clock.time(step), time.time_ns()))
    content = scratch.trace_of(seen)
    base = content["baseTimeNanoseconds"]
    events = [event for event in content["traceEvents"] if event.get("ph") == "X"]
    events.sort(key=lambda event: (event["ts"], -event["dur"]))
    kernels, collectives = spans_of(events)
    steps = []
    for begin, _, ended in windows:
        start, end = (begin - base) / 1e9, (ended - base) / 1e9
        inside = [
            [span for span in spans if start <= (span.start + span.end) / 2 < end]
            for spans in (kernels, collectives)
        ]
        steps.append(Step(start, end, *inside))
    outside: set[Span] = set()
    if place.device == "cuda":  # a CPU has one clock; how ranks meet runs between two steps
        outside = set(kernels).difference(*(one.kernels for one in steps))
    return Recording(
        steps,
        statistics.fmean(seconds for _, seconds, _ in windows),
        sum(span.end - span.start for span in outside) / PROFILED,
    )


def spans_of(events: list[dict]) -> tuple[list[Span], list[Span]]:
    """(kernels, collectives) of a Chrome trace's events, which stand in the order of their starts,
    the outer before the inner: `ts` and `dur` are in microseconds. Kernels are a GPU's, with its
    copies, or the operators of the main thread that no other one calls."""
    kernels: list[Span] = []
    collectives: list[Span] = []
    main = ("cpu_op", os.getpid())
    until = 0.0
    for event in events:
        name = event["name"]
        kind = event.get("cat")
        span = Span(name, event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6)
        if name.startswith("gloo:") or (kind == "kernel" and "nccl" in name.lower()):
            collectives.append(span)
        elif kind in ON_GPU or ((kind, event.get("tid")) == main and span.start >= until):
            until = span.end
            kernels.append(span)
    return kernels, collectives
