"""What Nsight Systems records unless it is told otherwise, and the programs that a profile cell
depends on."""

# Part of a spec only if changed: what nsys records beside CUDA calls, kernels and ranges.
NSYS_NEUTRAL = {
    "trace": ["cuda", "nvtx"],
    "python_backtrace": "none",
    "pytorch": "none",
    "cuda_memory_usage": False,
    "cuda_graph_trace": "node",
}


def tools(device: str) -> tuple[str, ...]:
    """Programs whose version counts for a cell: a cell that went without nsys is stale when nsys
    appears."""
    return ("nsys",) if device == "cuda" else ()
