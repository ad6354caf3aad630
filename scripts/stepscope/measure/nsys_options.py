"""What Nsight Systems is asked, and what is tried where it records nothing."""

from collections.abc import Iterator

from stepscope.config.profilers import NSYS_NEUTRAL

# What is known to help where a driver and an nsys give an empty capture: kernels traced by
# software, no capture range.
REMEDIES: dict[str, dict[str, tuple[str, str]]] = {
    "as configured": {},
    "kernels traced by software": {"trace": ("cuda", "cuda-sw")},
    "without a capture range": {"capture-range": ("cudaProfilerApi", "none")},
}


def options(spec: dict) -> dict[str, str]:
    """Options of `nsys profile` for a spec: CUDA and NVTX inside the capture range, no sampling of
    the processor.

    Python's backtraces come with those of the CUDA calls, and nsys unwinds these only while it
    samples the processor.
    """
    chosen = NSYS_NEUTRAL | spec
    stacks = {"python-backtrace": "cuda", "cudabacktrace": "kernel:0", "sample": "process-tree"}
    found = {
        "trace": chosen["nsys_trace"],
        "capture-range": "cudaProfilerApi",
        "capture-range-end": "stop",
        "sample": "none",
        "cpuctxsw": "none",
        "cuda-graph-trace": chosen["nsys_cuda_graph_trace"],
        "force-overwrite": "true",
    }
    if "nsys_python_backtrace" in spec:
        found |= stacks
    if "nsys_pytorch" in spec:
        found["pytorch"] = spec["nsys_pytorch"]
    if "nsys_cuda_memory_usage" in spec:
        found["cuda-memory-usage"] = "true"
    return found


def attempts(spec: dict) -> Iterator[tuple[str, dict[str, str]]]:
    """(what is tried, options), the configured ones first."""
    for name, changes in REMEDIES.items():
        changed = options(spec)
        for key, (before, after) in changes.items():
            changed[key] = changed[key].replace(before, after, 1)
        if changed["capture-range"] == "none":
            del changed["capture-range-end"]
        yield name, changed
