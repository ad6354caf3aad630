"""What moved or set memory, phase by phase: copies by direction, memsets, and kernels that only write a constant."""

import pandas as pd

from stepscope.trace import kernel_names
from stepscope.trace.attribution import Attribution
from stepscope.trace.events import MEMORY, MS
from stepscope.trace.phase_tables import selections

_CATEGORY = "memory set/copy"
_COPY = "[CUDA memcpy "
COPY, MEMSET, FILL = "copy", "memset", "fill"


def memory_operations(found: Attribution) -> pd.DataFrame:
    """A row for each phase and name, the most time first; empty where nothing moved or set memory.

    A copy engine does what counts as `copy` and `memset`, a kernel (on a CPU an operator) what counts as `fill`. The
    share is of the time of all that the phase launched.
    """
    operations, names = found.trace.operations, found.trace.names
    codes, is_memory = operations["name"].to_numpy(), (operations["kind"] == MEMORY).to_numpy()
    wanted = {code for code in set(codes.tolist()) if kernel_names.describe(names[code]).category == _CATEGORY}
    every = pd.DataFrame({"code": codes, "memory": is_memory, "ns": found.durations})
    of_memory, parts = every["code"].isin(wanted).to_numpy() | is_memory, []
    for phase, mask in selections(found).items():
        total = found.durations[mask].sum()
        own = every[mask & of_memory].groupby(["code", "memory"])["ns"].agg(["size", "sum"])
        for (code, is_operation), (count, ns) in own.sort_values("sum", ascending=False, kind="stable").iterrows():
            parts.append(
                {"phase": phase, "kind": _kind(names[code], is_operation), "name": _name(names[code])}
                | {"total_ms": ns / MS, "ms_per_step": ns / MS / found.steps}
                | {"share_of_phase_gpu_time": ns / total if total else None}
                | {"instances": int(count), "instances_per_step": count / found.steps}
            )
    return pd.DataFrame(parts)


def _kind(name: str, is_operation: bool) -> str:
    if not is_operation:
        return FILL
    return MEMSET if "memset" in name.lower() else COPY


def _name(name: str) -> str:
    """The direction of a copy, `Host-to-Device`; of anything else its short name."""
    return name.removeprefix(_COPY).removesuffix("]") if name.startswith(_COPY) else kernel_names.describe(name).short
