"""Which module's forward operators each backward kernel belongs to, by autograd's sequence numbers.

The backward function with a sequence number was made by the latest forward operator with the same
one (documentation of torch.autograd.profiler.emit_nvtx). Each thread counts for itself, so the
latest one before the backward function is meant; operators inside backward functions make no
functions that this backward pass runs, but for those that activation checkpointing runs again.
"""

import numpy as np
import pandas as pd

from .attribution import Attribution
from .events import SECOND
from .kernel_categories import CATEGORIES
from .nesting import arrays, climb, latest_before

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
    codes, sequence = arrays(found.trace.ranges, "name", "sequence")
    if (sequence < 0).all():
        return np.zeros(len(found.launch), dtype=bool), np.full(len(found.launch), -1)
    function = found.trace.names_that(is_backward)[codes]
    engine = found.trace.names_that(lambda name: name.startswith(_ENGINE))[codes]
    numbered = function & (sequence >= 0)
    at = climb(found.innermost, found.parent, ~numbered)
    in_backward = climb(found.innermost, found.parent, ~(engine | function)) >= 0
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
    """For each range that is a backward function with a number the name code of the module that
    made it, else -1. function, numbered: masks of the ranges."""
    ranges, codes = found.trace.ranges, found.codes
    forward = np.flatnonzero((ranges["sequence"] >= 0) & ~function)
    inside = climb(found.parent[forward], found.parent, ~function)
    # outside of every function, or run again
    counts = np.append(found.trace.names_that(_RUNS_AGAIN.__eq__)[codes], True)
    forward = forward[counts[inside]]
    wanted = np.flatnonzero(numbered)
    numbers = ranges[["process", "sequence", "start"]]
    made = latest_before(numbers.iloc[forward], numbers.iloc[wanted])
    around = climb(found.parent[forward], found.parent, (found.operator | found.is_phase)[codes])
    result = np.full(len(ranges), -1)
    at = np.append(around, -1)[made]
    result[wanted] = np.where(at >= 0, codes[at], -1)
    return result
