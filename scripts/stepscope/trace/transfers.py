"""What each process did on each device, what moved between devices, and what waited for them."""

import re

import numpy as np
import pandas as pd

from stepscope.trace.attribution import Attribution
from stepscope.trace.categories import category_of
from stepscope.trace.device_tables import covered_within
from stepscope.trace.events import GRAPH, MEMORY, MS, US
from stepscope.trace.nesting import groups, union
from stepscope.trace.phase_tables import selections

_PROCESS_ID = 2**24 - 1  # the last bits of Nsight Systems' number of a process
_WAITS = re.compile(
    r"cu(da)?(Device|Stream|Event|Ctx|Thread)Synchronize|cu(da)?Memcpy(?!\w*Async)|cu(da)?Memset(?!\w*Async)"
)
_MEMORY = re.compile(r"^\[CUDA (?:memcpy (?P<direction>.*)|memset)\]$")
FILLS_BY_KERNEL = "fill by a kernel"


def processes(found: Attribution) -> pd.DataFrame:
    """A row for each phase, process and device: what the process launched in the phase; steps are the process's own."""
    rows = []
    for phase, mask in selections(found).items():
        for place, own in _places(found):
            mine = own[mask[own]]
            ms = found.durations[mine].sum() / MS
            if len(mine):
                kernels = int(found.is_kernel[mine].sum())
                row = {"phase": phase, "kernels": kernels, "gpu_ms": ms, "gpu_ms_per_step": ms / _steps(found, own)}
                rows.append(place | row)
    return pd.DataFrame(rows)


def communication(found: Attribution) -> pd.DataFrame:
    """A row for each process and device with communication kernels (NCCL and others): how much of their time other
    kernels of the process ran beside them on the device.

    `busy` is the time in which at least one of them ran; it is `hidden` where a kernel that computes ran then, and else
    `exposed`.
    """
    operations = found.trace.operations
    start, end, kind = (operations[key].to_numpy() for key in ("start", "end", "kind"))
    communicates = _of_category(found, "communication") & (kind != MEMORY)
    rows = []
    for place, own in _places(found):
        mine, others = own[communicates[own]], own[~communicates[own] & (kind[own] != MEMORY)]
        if not len(mine):
            continue
        running = union(start[mine], end[mine])
        busy = int((running[1] - running[0]).sum())
        hidden = covered_within(union(start[others], end[others]), running) if len(others) else 0
        steps = _steps(found, own)
        rows.append(
            place
            | {"kernels": len(mine), "kernels_per_step": len(mine) / steps}
            | {
                "total_ms": found.durations[mine].sum() / MS,
                "busy_ms": busy / MS,
                "busy_ms_per_step": busy / MS / steps,
            }
            | {"hidden_ms": hidden / MS, "exposed_ms": (busy - hidden) / MS}
            | {"hidden_share": hidden / busy if busy else None}
        )
    return pd.DataFrame(rows)


def copies(found: Attribution) -> pd.DataFrame:
    """A row for each process, device and kind of what moves or fills memory: copies by direction, fills by the driver
    and fills by kernels. Bytes are known of the former two, if the trace has them."""
    operations = found.trace.operations
    code, kind, size = (operations[key].to_numpy() for key in ("name", "kind", "bytes"))
    names = found.trace.names
    described = {each: _kind_of_transfer(names[each]) for each in np.unique(code[kind == MEMORY])}
    by_kernel = _of_category(found, "memory set/copy") & (kind != MEMORY) & (kind != GRAPH)
    rows = []
    for place, own in _places(found):
        whole, steps = found.durations[own].sum(), _steps(found, own)
        what = np.array([FILLS_BY_KERNEL if by_kernel[at] else described.get(code[at], "") for at in own], dtype=object)
        for name in sorted(set(what) - {""}):
            mine = own[what == name]
            ns = found.durations[mine].sum()
            known = mine[size[mine] >= 0]
            moved, taken = float(size[known].sum()), found.durations[known].sum()
            rows.append(
                place
                | {"what": name, "count": len(mine), "count_per_step": len(mine) / steps}
                | {"total_ms": ns / MS, "ms_per_step": ns / MS / steps}
                | {"share_of_device_time": ns / whole if whole else None}
                | {"bytes": moved if len(known) else None, "gb_per_s": moved / taken if len(known) and taken else None}
            )
    table = pd.DataFrame(rows)
    by = ["process", "device", "total_ms"]
    return table.sort_values(by, ascending=[True, True, False], kind="stable") if len(table) else table


def synchronisations(found: Attribution) -> pd.DataFrame:
    """A row for each process and call in which the host waits for a device, the longest in total first."""
    calls, names = found.trace.calls, found.trace.names
    waits = np.array([bool(_WAITS.match(name)) for name in names], dtype=bool)
    own = calls[waits[calls["name"].to_numpy()]] if not found.trace.device_is_host else calls[:0]
    rows = []
    for (process, name), part in own.groupby(["process", "name"]):
        length = (part["end"] - part["start"]).to_numpy()
        steps = found.steps_of_process.get(int(process), 0) or found.steps
        rows.append(
            {"process": int(process) & _PROCESS_ID, "name": names[name]}
            | {"calls": len(part), "calls_per_step": len(part) / steps}
            | {"total_ms": length.sum() / MS, "ms_per_step": length.sum() / MS / steps, "max_us": length.max() / US}
        )
    return pd.DataFrame(sorted(rows, key=lambda row: -row["total_ms"]))


def _places(found: Attribution):
    """({process, device, device in the process, its name}, operations there) for each process and device."""
    operations = found.trace.operations
    process, device = operations["process"].to_numpy(), operations["device"].to_numpy()
    for owner, mine in groups(process):
        for number, part in groups(device[mine]):
            own = found.trace.own_devices.get((owner, number))
            place = {"process": owner & _PROCESS_ID, "device": number, "device_in_process": own}
            yield place | {"device_name": found.trace.devices.get(number, "")}, mine[part]


def _steps(found: Attribution, own: np.ndarray) -> int:
    """Steps of the process of these operations."""
    process = int(found.trace.operations["process"].to_numpy()[own[0]])
    return found.steps_of_process.get(process, 0) or found.steps


def _of_category(found: Attribution, category: str) -> np.ndarray:
    """Mask of the operations of a category."""
    codes, inverse = np.unique(found.trace.operations["name"].to_numpy(), return_inverse=True)
    chosen = np.array([category_of(found.trace.names[code]) == category for code in codes], dtype=bool)
    return chosen[inverse] if len(codes) else np.zeros(0, dtype=bool)


def _kind_of_transfer(name: str) -> str:
    match = _MEMORY.match(name)
    if match is None:
        return f"copy {name}"
    return f"copy {match['direction']}" if match["direction"] else "fill"
