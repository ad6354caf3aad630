"""What each process did on each device, what moved between devices, and what waited for them;
seconds of a step."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from stepscope.trace.attribution import Attribution
from stepscope.trace.events import GRAPH, MEMORY, SECOND
from stepscope.trace.kernel_categories import CATEGORIES
from stepscope.trace.nesting import covered, groups, union
from stepscope.trace.phase_tables import selections

_PROCESS_ID = 2**24 - 1  # the last bits of Nsight Systems' number of a process
_WAITS = re.compile(
    r"cu(da)?(Device|Stream|Event|Ctx|Thread)Synchronize|cu(da)?Memcpy(?!\w*Async)|cu(da)?Memset(?!\w*Async)"
)
_MEMORY = re.compile(r"^\[CUDA (?:memcpy (?P<direction>.*)|memset)\]$")
FILLS_BY_KERNEL = "fill by a kernel"


def processes(found: Attribution) -> pd.DataFrame:
    """A row for each phase, process and device: what the process launched in the phase."""
    rows = []
    for phase, mask in selections(found).items():
        for place, own, steps in _places(found):
            mine = own[mask[own]]
            if len(mine):
                times = {"gpu_time": found.durations[mine].sum() / SECOND / steps}
                rows.append(
                    {"phase": phase}
                    | place
                    | {"kernels": found.is_kernel[mine].sum() / steps}
                    | times
                )
    return pd.DataFrame(rows)


def communication(found: Attribution) -> pd.DataFrame:
    """A row for each process and device with communication kernels (NCCL and others): how much of
    their time other kernels of the process ran beside them on the device.

    `busy` is the time in which at least one of them ran; it is `hidden` where a kernel that
    computes ran then, and else `exposed`.
    """
    operations = found.trace.operations
    start, end, kind = (operations[key].to_numpy() for key in ("start", "end", "kind"))
    communicates = (found.category == CATEGORIES.index("communication")) & (kind != MEMORY)
    rows = []
    for place, own, steps in _places(found):
        mine, others = own[communicates[own]], own[~communicates[own] & (kind[own] != MEMORY)]
        if not len(mine):
            continue
        running = union(start[mine], end[mine])
        busy = int((running[1] - running[0]).sum())
        hidden = int(np.diff(covered(start[others], end[others], running), axis=0).sum())
        times = {
            "time": found.durations[mine].sum(),
            "busy": busy,
            "hidden": hidden,
            "exposed": busy - hidden,
        }
        rows.append(
            place
            | {"kernels": len(mine) / steps}
            | {key: value / SECOND / steps for key, value in times.items()}
        )
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
    by_kernel = (
        (found.category == CATEGORIES.index("memory set/copy")) & (kind != MEMORY) & (kind != GRAPH)
    )
    rows = []
    for place, own, steps in _places(found):
        what = np.array(
            [FILLS_BY_KERNEL if by_kernel[at] else described.get(code[at], "") for at in own],
            dtype=object,
        )
        for name in sorted(set(what) - {""}):
            mine = own[what == name]
            known = mine[size[mine] >= 0]
            moved, taken = float(size[known].sum()), found.durations[known].sum() / SECOND
            row = {
                "what": name,
                "calls": len(mine) / steps,
                "time": found.durations[mine].sum() / SECOND / steps,
            }
            row |= (
                {"bytes": moved / steps, "rate": moved / taken if taken else None}
                if len(known)
                else {}
            )
            rows.append(place | row)
    rows.sort(key=lambda row: (row["process"], row["device"], -row["time"]))
    return pd.DataFrame(rows + _waits(found))


def _waits(found: Attribution) -> list[dict]:
    calls, names = found.trace.calls, found.trace.names
    waits = np.array([bool(_WAITS.match(name)) for name in names], dtype=bool)
    own = calls[waits[calls["name"].to_numpy()]] if not found.trace.device_is_host else calls[:0]
    rows = []
    for (process, name), part in own.groupby(["process", "name"]):
        steps = found.steps_of_process.get(process, found.steps)
        row = {
            "process": int(process) & _PROCESS_ID,
            "what": names[name],
            "calls": len(part) / steps,
        }
        rows.append(row | {"time": int((part["end"] - part["start"]).sum()) / SECOND / steps})
    return sorted(rows, key=lambda row: -row["time"])


def _places(found: Attribution) -> Iterator[tuple[dict, np.ndarray, int]]:
    """({process, device, its name}, operations there, the process's steps) for each process and
    device."""
    operations = found.trace.operations
    device = operations["device"].to_numpy()
    for owner, mine in groups(operations["process"].to_numpy()):
        for number, part in groups(device[mine]):
            place = {"process": owner & _PROCESS_ID, "device": number}
            place["device_name"] = found.trace.devices.get(number, "")
            yield place, mine[part], found.steps_of_process.get(owner, found.steps)


def _kind_of_transfer(name: str) -> str:
    match = _MEMORY.match(name)
    if match is None:
        return f"copy {name}"
    return f"copy {match['direction']}" if match["direction"] else "fill"
