"""What each process did on each device, what moved memory, and what waited for it; seconds of a
step."""

import re

import numpy as np
import pandas as pd

from stepscope.trace.attribution import Attribution
from stepscope.trace.events import GRAPH, MEMORY, SECOND
from stepscope.trace.kernel_categories import CATEGORIES
from stepscope.trace.phase_tables import selections
from stepscope.trace.ranks import places

# Calls in which the host waits: CUDA's and HIP's by their words, whoever else follows them (MUSA,
# Ascend's aclrt), and Level Zero's and SYCL's own.
_WAITS = re.compile(
    r"[a-z]+(Device|Stream|Event|Ctx|Thread|Queue)Synchronize"
    r"|aclrtSynchronize(Stream|Device|Event)"
    r"|(cu|cuda|hip|musa)(Memcpy|Memset)(?!\w*Async)"
    r"|ur(Queue|Event)(Finish|Wait)|ze(CommandQueue|Event\w*)Synchronize"
    r"|cnrtQueueSync"
)
_MEMORY = re.compile(r"^\[CUDA (?:memcpy (?P<direction>.*)|memset)\]$")
FILLS_BY_KERNEL = "fill by a kernel"


def processes(found: Attribution) -> pd.DataFrame:
    """A row for each phase, process and device: what the process launched in the phase."""
    rows = []
    for phase, mask in selections(found).items():
        for place in places(found):
            mine = place.own[mask[place.own]]
            if not len(mine):
                continue
            row = {"phase": phase} | place.shown
            row["kernels"] = found.is_kernel[mine].sum() / place.steps
            row["gpu_time"] = found.durations[mine].sum() / SECOND / place.steps
            rows.append(row)
    return pd.DataFrame(rows)


def transfers(found: Attribution) -> pd.DataFrame:
    """A row for each process, device and kind of what moves or fills memory, and for each call in
    which the host waits.

    Copies stand by direction, fills by the driver and fills by kernels apart. `bytes` a step and
    `rate` (B/s) are known of the former two, if the trace has them. A wait has no device.
    """
    operations, names = found.trace.operations, found.trace.names
    code, kind, size = (operations[key].to_numpy() for key in ("name", "kind", "bytes"))
    described = {each: _kind_of_transfer(names[each]) for each in np.unique(code[kind == MEMORY])}
    by_kernel = found.category == CATEGORIES.index("memory set/copy")
    by_kernel &= (kind != MEMORY) & (kind != GRAPH)
    rows = []
    for place in places(found):
        what = np.array([described.get(code[at], "") for at in place.own], dtype=object)
        what[by_kernel[place.own]] = FILLS_BY_KERNEL
        own_rows = []
        for name in sorted(set(what) - {""}):
            mine = place.own[what == name]
            row = place.shown | {"what": name, "calls": len(mine) / place.steps}
            row["time"] = found.durations[mine].sum() / SECOND / place.steps
            known = mine[size[mine] >= 0]
            if len(known):
                moved = float(size[known].sum())
                taken = found.durations[known].sum() / SECOND
                row["bytes"] = moved / place.steps
                row["rate"] = moved / taken if taken else None
            own_rows.append(row)
        rows += sorted(own_rows, key=lambda row: -row["time"])
    return pd.DataFrame(rows + _waits(found))


def _waits(found: Attribution) -> list[dict]:
    calls, names = found.trace.calls, found.trace.names
    waits = np.array([bool(_WAITS.match(name)) for name in names], dtype=bool)
    own = calls[waits[calls["name"].to_numpy()]] if not found.trace.device_is_host else calls[:0]
    length = (own["end"] - own["start"]).groupby([own["process"], own["name"]])
    rows = []
    for each in length.agg(["size", "sum"]).reset_index().to_dict("records"):
        process = int(each["process"])
        steps = found.steps_of_process.get(process, found.steps)
        row = {"process": found.trace.process_name(process), "what": names[int(each["name"])]}
        row |= {"calls": each["size"] / steps, "time": each["sum"] / SECOND / steps}
        rows.append(row)
    return sorted(rows, key=lambda row: -row["time"])


def _kind_of_transfer(name: str) -> str:
    match = _MEMORY.match(name)
    if match is None:
        return f"copy {name}"
    return f"copy {match['direction']}" if match["direction"] else "fill"
