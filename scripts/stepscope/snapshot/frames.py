"""Which line of a stack a person would look at, and what PyTorch was doing there."""

import re
from functools import cache

from stepscope.snapshot.events import Frame, Snapshot

# Files that are nobody's own code: installed packages, Python's library, PyTorch's and einops's own sources wherever
# they are, code that has no file.
_LIBRARY = re.compile(
    r"/(site|dist)-packages/|/lib(64)?/python\d[\d.]*/|/Lib/|^<(frozen|string|eval_with_key)"
    r"|(^|/)torch/(_\w+/|_\w+\.py|amp/|autograd/|cuda/|distributed/|fx/|functional\.py|jit/|nn/|ops|optim/|profiler/"
    r"|utils/|tensor\.py|cpu/|library\.py|random\.py|overrides\.py|serialization\.py|storage\.py)"
    r"|(^|/)einops/(_\w+\.py|array_api\.py|einops\.py|experimental/|layers/|packing\.py|parsing\.py)"
)
_HOOKS = ("__torch_dispatch__", "__torch_function__")
_PYTHON = re.compile(r"\.pyx?$|^<(stdin|ipython|string|frozen|eval_with_key|module)|/ipykernel_\d+/")


def is_python(frame: Frame) -> bool:
    """Whether it is a frame of Python; those of C++ have a source file of C++, an object file or "??"."""
    return bool(_PYTHON.search(frame.file))


def is_user(frame: Frame) -> bool:
    """Whether it is a frame of Python outside all libraries, and no hook that only watches what others call."""
    return is_python(frame) and frame.function not in _HOOKS and not _LIBRARY.search(frame.file.replace("\\", "/"))


@cache
def shown(frame: Frame) -> str:
    """As in "file.py:123 function"; a file of this repository relative to it, others without their folders."""
    path = frame.file.replace("\\", "/")
    ours, parts = path.rfind("/scripts/"), path.rsplit("/", 2)
    if ours >= 0:
        path = path[ours + 1 :]
    elif parts[-1] == "__init__.py":  # which says nothing alone
        path = "/".join(parts[-2:])
    else:
        path = parts[-1]
    return f"{path}:{frame.line} {frame.function}"


def user_lines(snapshot: Snapshot) -> list[str]:
    """For each stack its first frame in user code, as `shown`; "" where it has none."""
    user = [is_user(frame) for frame in snapshot.frames]
    found = (next((number for number in stack if user[number]), None) for stack in snapshot.stacks)
    return ["" if number is None else shown(snapshot.frames[number]) for number in found]


def has_python(snapshot: Snapshot) -> list[bool]:
    """For each stack whether it has any frame of Python."""
    python = [is_python(frame) for frame in snapshot.frames]
    return [any(python[number] for number in stack) for stack in snapshot.stacks]
