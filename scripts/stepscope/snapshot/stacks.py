"""What a stack says: which line of it a person would look at, and what PyTorch was doing when it
allocated.

The latter is for snapshots of programs that are not ours. The frames are searched from the
innermost call outwards, and the first that fits one of these decides:

- backward: autograd's engine in C++, its functions in Python, or any function called `backward`.
  The backward pass runs in a thread of PyTorch's own, so an allocation without any frame of Python
  is of the backward pass too, if others have such;
- recomputed: a part of the forward pass that torch.utils.checkpoint, anywhere further out, runs
  again in the backward pass;
- optimizer: anything of torch.optim (whose hook also stands outside every `step` of a class derived
  from its own), a function with the name of an optimizer, or one called `step`, unless that
  function calls the model or the backward pass, and so is a step of training; what folders and
  files are called says nothing;
- made: torch.nn.init, a constructor, or a module on its way to a device: where parameters come
  from;
- forward: torch.nn, or a function called `forward`.
"""

import re
from functools import cache

import numpy as np

from .events import ALLOC, UNKNOWN_LINE, Frame, Snapshot

NO_STACK = "(no frames)"
MOST_FRAMES = 64
KINDS = range(6)
NOTHING, FORWARD, BACKWARD, RECOMPUTED, OPTIMIZER, MADE = KINDS
PHASE_OF_KIND = {
    FORWARD: "forward",
    BACKWARD: "backward",
    RECOMPUTED: "backward",
    OPTIMIZER: "optimizer",
    MADE: "",
}

_OPTIMIZER = re.compile(r"(^|/)torch/optim/")
_UPDATES = re.compile(
    (
        r"(^|_)(optimi[sz]er|adamw?|adagrad|adadelta|adafactor|sgd|rmsprop|lamb|lion|muon"
        r"|shampoo)(_|$)"
    ),
    re.IGNORECASE,
)
_PREPARES = re.compile(
    r"^_*(make|create|build|get|configure|init|set|setup|zero)(_|$)", re.IGNORECASE
)
_STEP = "step"
_AUTOGRAD = re.compile(r"(^|/)torch/(autograd/|_tensor\.py$)")
_CHECKPOINT = re.compile(r"(^|/)torch/utils/checkpoint\.py$")
_MAKING = re.compile(r"(^|/)torch/nn/init\.py$")
_MODULES = re.compile(r"(^|/)torch/nn/(modules/|functional\.py$)")
_MODULE = re.compile(r"(^|/)torch/nn/modules/module\.py$")
_MOVES = (
    "_apply",
    "<lambda>",
    "convert",
)  # of a module: `.cuda()`, `.half()` and `.to()` hand the others to the first
_ENGINE = re.compile(r"torch::autograd::(Engine|python::PythonEngine)::|evaluate_function")
_CAST = "autocast::cached_cast"

# Files that are not the user's code: installed packages, Python's library, PyTorch's and einops's
# own sources wherever they are, code without a file.
_LIBRARY = re.compile(
    r"/(site|dist)-packages/|/lib(64)?/python\d[\d.]*/|/Lib/|^<(frozen|string|eval_with_key)"
    r"|(^|/)torch/(_\w+/|_\w+\.py|amp/|autograd/|cuda/|distributed/|fx/|functional\.py|jit/"
    r"|nn/|ops|optim/|profiler/"
    r"|utils/|tensor\.py|cpu/|library\.py|random\.py|overrides\.py|serialization\.py|storage\.py)"
    r"|(^|/)einops/(_\w+\.py|array_api\.py|einops\.py|experimental/|layers/|packing\.py"
    r"|parsing\.py)"
)
_PYTORCH = re.compile(r"(^|/)(torch|einops)/|/lib(64)?/python\d[\d.]*/(?!(site|dist)-packages/)|^<")
_AROUND = re.compile(r"(^|/)stepscope/model/own/")  # what calls a model that is not ours
_HOOKS = ("__torch_dispatch__", "__torch_function__")
_PYTHON = re.compile(
    r"\.pyx?$|^<(stdin|ipython|string|frozen|eval_with_key|module)|/ipykernel_\d+/"
)


def is_python(frame: Frame) -> bool:
    """Whether it is a frame of Python; those of C++ have a source file of C++, an object file or
    "??"."""
    return bool(_PYTHON.search(frame.file))


@cache
def is_user(frame: Frame) -> bool:
    """Whether it is a frame of Python outside all libraries, and not a hook that only watches the
    calls of others."""
    return is_python(frame) and frame.function not in _HOOKS and not _LIBRARY.search(_path(frame))


@cache
def shown(frame: Frame) -> str:
    """As in "file.py:123 function"; a file of this repository relative to it, others without their
    folders."""
    path = _path(frame)
    ours = path.rfind("/scripts/")
    parts = path.rsplit("/", 2)
    alone = 2 if parts[-1] == "__init__.py" else 1  # says nothing alone
    path = path[ours + 1 :] if ours >= 0 else "/".join(parts[-alone:])
    return _placed(path, frame)


def _placed(path: str, frame: Frame) -> str:
    if frame.line == UNKNOWN_LINE:
        return f"{path} (unknown line) {frame.function}"
    return f"{path}:{frame.line} {frame.function}"


def user_line(stack: list[Frame]) -> str:
    """A stack's first frame in user code, as `shown`; "" where it has none.

    Where only StepScope called a model of a package, as transformers' are, it is the first frame in
    such a package.
    """
    found = next(filter(is_user, stack), None)
    if found and _AROUND.search(_path(found)):
        found = next(filter(_is_package, stack), found)
    return shown(found) if found else ""


def user_lines(snapshot: Snapshot) -> list[str]:
    """For each stack its user_line."""
    return [user_line([snapshot.frames[at] for at in stack]) for stack in snapshot.stacks]


@cache
def _is_package(frame: Frame) -> bool:
    """Whether it is a frame of Python in an installed package other than PyTorch and einops."""
    path = _path(frame)
    return is_python(frame) and bool(_LIBRARY.search(path)) and not _PYTORCH.search(path)


def _path(frame: Frame) -> str:
    return frame.file.replace("\\", "/")


def has_python(snapshot: Snapshot) -> np.ndarray:
    """bool for each stack, and one more at the end: whether it has any frame of Python."""
    return _any_frame(snapshot, [is_python(frame) for frame in snapshot.frames])


def kinds(snapshot: Snapshot) -> np.ndarray:
    """int8 for each stack, and one more at the end for events without any."""
    single = _kinds_of_frames(snapshot)
    python = has_python(snapshot)
    allocating = [np.unique(device.stack[device.action == ALLOC]) for device in snapshot.devices]
    empty = BACKWARD if any(python[number] for own in allocating for number in own) else NOTHING
    found = [
        _first([single[number] for number in stack], NOTHING if tells else empty)
        for stack, tells in zip(snapshot.stacks, python[:-1], strict=True)
    ]
    return np.array([*found, empty], dtype=np.int8)


def _kinds_of_frames(snapshot: Snapshot) -> list[int]:
    """For each frame its kind. Functions called `step` are optimizers' but for those that call the
    model."""
    frames, single = snapshot.frames, [_kind(frame) for frame in snapshot.frames]
    steps = {
        at for at, frame in enumerate(frames) if frame.function == _STEP and single[at] == OPTIMIZER
    }
    trains: set[str] = set()  # files whose `step` calls the model
    for stack in snapshot.stacks:
        inner = False
        for at in stack:
            if inner and at in steps:
                trains.add(frames[at].file)
            inner |= single[at] in (FORWARD, BACKWARD, RECOMPUTED)
    return [
        NOTHING if at in steps and frames[at].file in trains else kind
        for at, kind in enumerate(single)
    ]


def _first(kinds: list[int], otherwise: int) -> int:
    """The kind of a stack from those of its frames."""
    kind = next((each for each in kinds if each != NOTHING), otherwise)
    return RECOMPUTED if kind == FORWARD and RECOMPUTED in kinds else kind


def casts(snapshot: Snapshot) -> np.ndarray:
    """bool for each stack, and one more at the end: whether autocast made a low-precision copy
    (frames of C++ tell)."""
    single = [_CAST in frame.function for frame in snapshot.frames]
    return _any_frame(snapshot, single)


def _any_frame(snapshot: Snapshot, single: list[bool]) -> np.ndarray:
    return np.array(
        [*(any(single[number] for number in stack) for stack in snapshot.stacks), False]
    )


def _kind(frame: Frame) -> int:
    file, function = _path(frame), frame.function
    if not is_python(frame):
        return BACKWARD if _ENGINE.search(function) else NOTHING
    if _OPTIMIZER.search(file):
        return OPTIMIZER
    if _CHECKPOINT.search(file):
        return RECOMPUTED if function in ("recompute_fn", "unpack_hook", "backward") else NOTHING
    if _AUTOGRAD.search(file):
        return (
            BACKWARD
            if function in ("backward", "grad", "_engine_run_backward", "_make_grads")
            else NOTHING
        )
    if function == "backward":
        return BACKWARD
    if function == _STEP or (_UPDATES.search(function) and not _PREPARES.search(function)):
        return OPTIMIZER
    if _MAKING.search(file) or function in ("__init__", "_apply", "reset_parameters"):
        return MADE
    if function in _MOVES and _MODULE.search(file):
        return MADE
    return FORWARD if _MODULES.search(file) or function == "forward" else NOTHING


def whole(snapshot: Snapshot, number: int) -> str:
    """A stack as text: `file:line function` of each level, the innermost call first."""
    if number < 0 or not snapshot.stacks[number]:
        return NO_STACK
    frames = [snapshot.frames[at] for at in snapshot.stacks[number]]
    more = [f"{len(frames) - MOST_FRAMES} more"] if len(frames) > MOST_FRAMES else []
    return " ← ".join([*(_placed(each.file, each) for each in frames[:MOST_FRAMES]), *more])
