"""Which module's forward operators each backward kernel belongs to, by autograd's sequence numbers.

The backward function with a sequence number was made by the latest forward operator with the same
one (documentation of torch.autograd.profiler.emit_nvtx). Each thread counts for itself, so the
latest one before the backward function is meant; operators inside backward functions make no
functions that this backward pass runs, but for those that activation checkpointing runs again.
"""

import numpy as np
import pandas as pd

from stepscope.trace.attribution import Attribution
from stepscope.trace.events import SECOND
from stepscope.trace.kernel_categories import CATEGORIES
from stepscope.trace.nesting import climb, latest_before

NO_MODULE = "no module (gradients added up)"
_ENGINE = "autograd::engine"
_IN_CPP = "torch::autograd::CppNode<"
_RUNS_AGAIN = "CheckpointFunctionBackward"


def of_modules(found: Attribution) -> pd.DataFrame:
    """Module's name → seconds and kernels a step that its backward functions launched, elementwise
    ones apart.

    Empty without sequence numbers.
    """
    in_backward, module = backward_operations(found)
    own = np.flatnonzero(in_backward)
    if not len(own):
        return pd.DataFrame(index=pd.Index([], name="module"))
    ns = found.durations[own]
    kernels = found.is_kernel[own].astype(float)
    elementwise = kernels * (found.category[own] == CATEGORIES.index("elementwise"))
    values = {
        "backward_time": ns / SECOND,
        "backward_kernels": kernels,
        "backward_elementwise_time": ns * elementwise / SECOND,
        "backward_elementwise": elementwise,
    }
    names = [name or NO_MODULE for name in found.named(module[own])]
    return pd.DataFrame(values | {"module": names}).groupby("module").sum() / found.steps


def backward_operations(found: Attribution) -> tuple[np.ndarray, np.ndarray]:
    """For each operation: whether autograd's engine launched it, and the name code of its module or
    -1.

    Nothing is in the backward pass if the trace has no sequence numbers.
    """
    ranges, names = found.trace.ranges, found.trace.names
    nothing = np.zeros(len(found.launch), dtype=bool), np.full(len(found.launch), -1)
    if not len(ranges) or (ranges["sequence"] < 0).all():
        return nothing
    codes = ranges["name"].to_numpy()
    sequence = ranges["sequence"].to_numpy()
    used = np.unique(codes)
    function = np.zeros(len(names), dtype=bool)
    engine = np.zeros(len(names), dtype=bool)
    function[used] = [is_backward(names[code]) for code in used]
    engine[used] = [names[code].startswith(_ENGINE) for code in used]
    numbered = function[codes] & (sequence >= 0)
    at = climb(found.innermost, found.parent, ~numbered)
    in_backward = climb(found.innermost, found.parent, ~(engine | function)[codes]) >= 0
    module = np.append(_modules_of_functions(found, function, numbered), -1)[at]
    return in_backward, np.where(in_backward & (at >= 0), module, -1)


def is_backward(name: str) -> bool:
    """Whether this is the name of a function that autograd runs backward, such as MmBackward0, or
    that of one in an extension's C++."""
    return name.startswith(_IN_CPP) or (
        name.rstrip("0123456789").endswith("Backward") and not name.startswith(_ENGINE)
    )


def _modules_of_functions(
    found: Attribution, function: np.ndarray, numbered: np.ndarray
) -> np.ndarray:
    """For each range that is a backward function (`numbered`) the name code of the module that made
    it, else -1."""
    ranges = found.trace.ranges
    codes = ranges["name"].to_numpy()
    sequence = ranges["sequence"].to_numpy()
    forward = np.flatnonzero((sequence >= 0) & ~function[codes])
    inside = climb(found.parent[forward], found.parent, ~function[codes])
    again = np.array([name == _RUNS_AGAIN for name in found.trace.names] + [True], dtype=bool)
    forward = forward[
        again[np.append(codes, -1)[inside]]
    ]  # outside of every function, or run again
    wanted = np.flatnonzero(numbered)
    numbers = ranges[["process", "sequence", "start"]]
    made = latest_before(numbers.iloc[forward], numbers.iloc[wanted])
    around = climb(found.parent[forward], found.parent, (found.operator | found.is_phase)[codes])
    result = np.full(len(ranges), -1)
    at = np.append(around, -1)[made]
    result[wanted] = np.where(at >= 0, codes[at], -1)
    return result
