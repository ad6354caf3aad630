"""Which module's forward operators each backward kernel belongs to, by autograd's sequence numbers.

The backward function with a sequence number was made by the latest forward operator with the same one
(documentation of torch.autograd.profiler.emit_nvtx).
"""

import numpy as np
import pandas as pd

from stepscope.trace.attribution import Attribution
from stepscope.trace.events import KERNEL
from stepscope.trace.phase_tables import MS, is_operator

NO_MODULE = "no module (gradients added up)"


def modules(found: Attribution) -> pd.DataFrame:
    """A row for each module with the backward kernels that belong to it; empty without sequence numbers."""
    ranges, names = found.trace.ranges, found.trace.names
    sequence, codes, process = (ranges[key].to_numpy() for key in ("sequence", "name", "process"))
    if not len(ranges) or (sequence < 0).all():
        return pd.DataFrame()
    backward = np.array([is_backward(name) for name in names], dtype=bool)
    function = _climb(found.innermost, found.parent, ~(backward[codes] & (sequence >= 0)))
    engine = np.array([name.startswith("autograd::engine") for name in names], dtype=bool) | backward
    in_backward = _climb(found.innermost, found.parent, ~engine[codes]) >= 0
    is_kernel = (found.trace.operations["kind"] == KERNEL).to_numpy()
    own = np.flatnonzero(is_kernel & in_backward)
    module = _module_of_sequence(found, backward)
    labels = []
    for at in function[own].tolist():
        made_in = module.get((int(process[at]), int(sequence[at])), -1) if at >= 0 else -1
        labels.append(names[codes[made_in]] if made_in >= 0 else NO_MODULE)
    table = pd.DataFrame({"module": labels, "ns": found.durations[own]}).groupby("module")["ns"].agg(["size", "sum"])
    total = table["sum"].sum()
    result = pd.DataFrame(
        {
            "module": table.index,
            "kernels_per_step": table["size"].to_numpy() / found.steps,
            "gpu_ms_per_step": table["sum"].to_numpy() / MS / found.steps,
            "share_of_backward_gpu_time": table["sum"].to_numpy() / total if total else None,
        }
    )
    return result.sort_values("gpu_ms_per_step", ascending=False, ignore_index=True)


def is_backward(name: str) -> bool:
    """Whether this is the name of a function that autograd runs backward, such as MmBackward0."""
    return name.rstrip("0123456789").endswith("Backward") and not name.startswith("autograd::engine")


def _climb(start: np.ndarray, parent: np.ndarray, wrong_range: np.ndarray) -> np.ndarray:
    """From each range up to the first around it that is not wrong; -1 where there is none."""
    at = start.copy()
    while True:
        wrong = at >= 0
        wrong[wrong] = wrong_range[at[wrong]]
        if not wrong.any():
            return at
        at[wrong] = parent[at[wrong]]


def _module_of_sequence(found: Attribution, backward: np.ndarray) -> dict[tuple[int, int], int]:
    """(process, sequence number) -> the module's range around the latest forward operator with that number."""
    ranges, names = found.trace.ranges, found.trace.names
    sequence, codes, process = (ranges[key].to_numpy() for key in ("sequence", "name", "process"))
    numbered = sequence >= 0
    operator = np.array([is_operator(name) or name in found.phases for name in names], dtype=bool)
    operator[codes[numbered]] = True  # an operator, whatever it is called
    forward = np.flatnonzero(numbered & ~backward[codes])
    forward = forward[np.argsort(ranges["start"].to_numpy()[forward], kind="stable")]
    around = _climb(found.parent[forward], found.parent, operator[codes])
    keys = zip(process[forward].tolist(), sequence[forward].tolist(), strict=True)
    return dict(zip(keys, around.tolist(), strict=True))
