"""How busy the devices were, and how long the gaps are between their operations and between the
host's calls."""

import re

import numpy as np
import pandas as pd

from .attribution import Attribution
from .events import SECOND
from .nesting import arrays, covered, groups, locate, reaching, union
from .phase_tables import ALL, selections

# Look-ups of 0.1 us, recorded beside each launch by new drivers: a gap between both would halve the
# median of gaps.
_LOOK_UP = re.compile(r"cu(Kernel|Func|Library|Module)Get")


def gaps(found: Attribution) -> pd.DataFrame:
    """A row for each phase and device: busy and idle time of the device while the phase was open on
    the host, a step.

    Busy is the time in which at least one operation ran, whichever phase launched it: busy and idle
    add up to `wall`, the host time of the phase's ranges in those processes that use the device
    (for `all`, from the device's first operation to its last, and `idle_with_host` from the first
    event of the host to the last of all). Gaps and queue delay are those of the operations
    that the phase launched: a gap lies between two operations of one occurrence with nothing else
    on the device in it; the queue delay runs from the end of the launching call to the start of the
    first operation that it launched (0 if that was earlier). Gaps of the host lie between one CUDA
    call's end and the next one's start on its thread. With several processes a step is one
    process's step.
    """
    start, end, process, device = arrays(
        found.trace.operations, "start", "end", "process", "device"
    )
    call_end = np.append(found.trace.calls["end"].to_numpy(), 0)
    is_first = (found.launch >= 0) & ~pd.Series(found.launch).duplicated().to_numpy()
    is_first &= not found.trace.device_is_host
    rows = []
    for phase, mask in selections(found).items():
        of_host = host_gaps(found, phase)
        for gpu, own in groups(device):
            users = np.unique(process[own])
            windows = _windows(found, phase, users, own)
            wall = int(np.diff(windows, axis=0).sum())
            launched = own[mask[own]]
            if not len(launched) and not wall:
                continue
            steps = max(found.steps_of_process.get(int(user), 0) for user in users) or found.steps
            busy = int(np.diff(covered(start[own], end[own], windows), axis=0).sum())
            waiting = launched[is_first[launched]]
            delay = np.maximum(start[waiting] - call_end[found.launch[waiting]], 0)
            between = _gaps(start[own], end[own], found.occurrence_in(phase)[own])
            times = {"wall": wall, "busy": busy, "idle": wall - busy}
            if phase == ALL:
                first, last = found.trace.extent
                times["idle_with_host"] = last - first - busy
            # seconds, of none nan
            gap, queue, host = (pd.Series(ns) / SECOND for ns in (between, delay, of_host))
            row = {
                "phase": phase,
                "device": gpu,
                **{name: time / SECOND / steps for name, time in times.items()},
                "gaps": len(between) / steps,
                "gap_median": gap.median(),
                "gap_max": gap.max(),
                "queue_delay_median": queue.median(),
                "host_gap_median": host.median(),
                "host_gap_max": host.max(),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def _windows(
    found: Attribution, phase: str, processes: np.ndarray, operations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(starts, ends) of the times in which a phase is open in any of the processes; of the whole
    capture from the first to the last of a device's operations (positions)."""
    if phase == ALL:
        own = found.trace.operations.iloc[operations]
        return np.array([own["start"].min()]), np.array([own["end"].max()])
    own = found.occurrences(phase)
    own = own[own["process"].isin(processes)]
    return union(own["start"].to_numpy(), own["end"].to_numpy())


def _gaps(start: np.ndarray, end: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Times between what ended last and the next start, if both are of one group (not -1); start is
    sorted."""
    if len(start) < 2:
        return np.empty(0)
    last = reaching(end)[:-1]
    gaps = start[1:] - end[last]
    return gaps[(gaps > 0) & (group[1:] == group[last]) & (group[1:] >= 0)]


def host_gaps(found: Attribution, phase: str) -> np.ndarray:
    """Nanoseconds between CUDA calls of a thread; both start in one occurrence of the phase.

    Look-ups of a kernel's name or attributes do not count as calls here.
    """
    calls = found.trace.calls
    calls = calls[~found.trace.names_that(_LOOK_UP.match)[calls["name"]]]
    if found.trace.device_is_host or not len(calls):
        return np.empty(0)
    calls = calls.sort_values("start", kind="stable")
    start, end, process, thread = arrays(calls, "start", "end", "process", "thread")
    group = np.zeros(len(calls), dtype=np.int64)
    if phase != ALL:
        group = locate(found.occurrences(phase), process, thread, start, group == 0)
    return np.concatenate([_gaps(start[own], end[own], group[own]) for _, own in groups(thread)])
