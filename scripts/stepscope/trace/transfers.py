"""What each process did on each device, what moved memory, and what waited for it; seconds of a
step."""

import re

import numpy as np
import pandas as pd

from stepscope.trace.attribution import Attribution
from stepscope.trace.events import KERNEL, MEMORY, SECOND
from stepscope.trace.kernel_categories import CATEGORIES
from stepscope.trace.nesting import arrays
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
            of_step = {
                "kernels": found.is_kernel[mine].sum() / place.steps,
                "gpu_time": found.durations[mine].sum() / SECOND / place.steps,
            }
            rows.append({"phase": phase} | place.shown | of_step)
    return pd.DataFrame(rows)


def transfers(found: Attribution) -> pd.DataFrame:
    """A row for each process, device and kind of what moves or fills memory, and for each call in
    which the host waits.

    Copies stand by direction, fills by the driver and fills by kernels apart. `bytes` a step and
    `rate` (B/s) are known of the former two, if the trace has them. A wait has no device.
    """
    code, kind, size = arrays(found.trace.operations, "name", "kind", "bytes")
    what = np.full(len(code), "", dtype=object)
    is_filling = found.category == CATEGORIES.index("memory set/copy")
    what[is_filling & (kind == KERNEL)] = FILLS_BY_KERNEL
    copies = np.flatnonzero(kind == MEMORY)
    what[copies] = [_kind_of_transfer(name) for name in found.named(code[copies])]
    rows = []
    for place in places(found):
        own_rows = []
        for name in sorted(set(what[place.own]) - {""}):
            mine = place.own[what[place.own] == name]
            row = place.shown | {"what": name, "calls": len(mine) / place.steps}
            row["time"] = found.durations[mine].sum() / SECOND / place.steps
            known = mine[size[mine] >= 0]
            if len(known):
                moved = float(size[known].sum())
                taken = found.durations[known].sum() / SECOND
                row["bytes"] = moved / place.steps
                row["rate"] = moved / taken if taken else None
            own_rows.append(row)
        rows += sorted(own_rows, key=_longest_first)
    return pd.DataFrame(rows + sorted(_waits(found), key=_longest_first))


def _longest_first(row: dict) -> float:
    return -row["time"]


def _waits(found: Attribution) -> list[dict]:
    trace = found.trace
    if trace.device_is_host:
        return []
    own = trace.calls[trace.names_that(_WAITS.match)[trace.calls["name"]]]
    length = (own["end"] - own["start"]).groupby([own["process"], own["name"]])
    rows = []
    for process, name, calls, ns in length.agg(["size", "sum"]).reset_index().to_numpy().tolist():
        steps = found.steps_of_process.get(process, found.steps)
        row = {"process": trace.process_name(process), "what": trace.names[name]}
        rows.append(row | {"calls": calls / steps, "time": ns / SECOND / steps})
    return rows


def _kind_of_transfer(name: str) -> str:
    match = _MEMORY.match(name)
    if match is None:
        return f"copy {name}"
    return f"copy {match['direction']}" if match["direction"] else "fill"
