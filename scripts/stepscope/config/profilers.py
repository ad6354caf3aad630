"""What is asked of a profiler, and the programs that a profile cell depends on."""

from collections.abc import Iterator

# Part of a spec only if changed: what nsys records beside CUDA calls, kernels and ranges.
NSYS_NEUTRAL = {
    "trace": ["cuda", "nvtx"],
    "python_backtrace": "none",
    "pytorch": "none",
    "cuda_memory_usage": False,
    "cuda_graph_trace": "node",
}

# What is known to help where a driver and an nsys give an empty capture: kernels traced by
# software, no capture range.
REMEDIES = {
    "as configured": {},
    "kernels traced by software": {"trace": ("cuda", "cuda-sw")},
    "without a capture range": {"capture-range": ("cudaProfilerApi", "none")},
}


def tools(device: str) -> tuple[str, ...]:
    """Programs whose version counts for a cell: a cell that went without nsys is stale when nsys
    appears."""
    return ("nsys",) if device == "cuda" else ()


def options(spec: dict) -> dict[str, str]:
    """Options of `nsys profile` for a spec: CUDA and NVTX inside the capture range, no sampling of
    the processor.

    Python's backtraces come with those of the CUDA calls, and nsys unwinds these only while it
    samples the processor.
    """
    stacks = {"python-backtrace": "cuda", "cudabacktrace": "kernel:0", "sample": "process-tree"}
    return {
        "trace": spec.get("nsys_trace", "cuda,nvtx"),
        **{
            "capture-range": "cudaProfilerApi",
            "capture-range-end": "stop",
            "sample": "none",
            "cpuctxsw": "none",
        },
        **{
            "cuda-graph-trace": spec.get("nsys_cuda_graph_trace", "node"),
            "force-overwrite": "true",
        },
        **(stacks if "nsys_python_backtrace" in spec else {}),
        **({"pytorch": spec["nsys_pytorch"]} if "nsys_pytorch" in spec else {}),
        **({"cuda-memory-usage": "true"} if "nsys_cuda_memory_usage" in spec else {}),
    }


def attempts(spec: dict) -> Iterator[tuple[str, dict[str, str]]]:
    """(what is tried, options), the configured ones first."""
    for name, changes in REMEDIES.items():
        changed = options(spec)
        for key, (before, after) in changes.items():
            changed[key] = changed[key].replace(before, after, 1)
        if changed["capture-range"] == "none":
            del changed["capture-range-end"]
        yield name, changed
