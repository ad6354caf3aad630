"""What Nsight Systems records unless it is told otherwise, and the programs that a profile cell
depends on."""

# Part of a spec, as flags take it, only if changed: what nsys records beside CUDA calls, kernels
# and ranges.
NSYS_NEUTRAL = {
    "nsys_trace": "cuda,nvtx",
    "nsys_python_backtrace": "none",
    "nsys_pytorch": "none",
}


def tools(device: str) -> tuple[str, ...]:
    """Programs whose version counts for a cell: a cell that went without nsys is stale when nsys
    appears."""
    return ("nsys",) if device == "cuda" else ()
