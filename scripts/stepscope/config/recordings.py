"""Axes of the profile and the memory study that say what is recorded: a name in the grid, more than
one flag of the program. Standard library only.

Like any axis they stand in a cell's path unless neutral; its spec has the flags that the name
stands for.
"""

USUAL = {"detail": "kernels", "start": "warm"}
"""Axis → the value that stands neither in a path nor in a spec."""

STANDS_FOR: dict[str, dict[tuple[str, str], dict]] = {
    "profile": {
        # What nsys records beside kernels, calls and our own ranges. Each slows the program
        # further, so that a few cells have it: a range for each of autograd's operators, which
        # links a kernel of backward to its module; the line of Python behind each call with what
        # the threads ask of the operating system; and the calls of CUDA's libraries.
        ("detail", "autograd"): {"nsys_pytorch": "autograd-nvtx"},
        ("detail", "python"): {"nsys_trace": "cuda,nvtx,osrt", "nsys_python_backtrace": "cuda"},
        ("detail", "libraries"): {"nsys_trace": "cuda,nvtx,cublas-verbose,cudnn"},
        # What a process's first step contains, beside a later one, which nsys does not separate.
        ("start", "cold"): {"profiler": "torch", "start": "cold"},
    },
    "memory": {
        # The first step, in which the optimizer's state is made, and the second beside it.
        ("start", "cold"): {"warmup": 0, "steps": 2},
    },
}
"""Study → (axis, value) → parts of the spec, as a person gives them to the program."""


def in_spec(study: str, options: dict) -> dict:
    """What stands in a spec for the options of a cell: the flags in place of names on these
    axes."""
    found = {name: value for name, value in options.items() if name not in USUAL}
    for name, parts in STANDS_FOR.get(study, {}).items():
        if name in options.items():
            found |= parts
    return found
