"""How busy the devices were, how long the gaps are, and what the host spent on CUDA and operating system calls."""

import re

import numpy as np
import pandas as pd

from stepscope.trace.attribution import Attribution
from stepscope.trace.events import MEMORY, MS, US
from stepscope.trace.nesting import groups, locate, union
from stepscope.trace.phase_tables import ALL, selections

# Look-ups of 0.1 us, recorded beside each launch by new drivers: a gap between both would halve the median of gaps.
_LOOK_UP = re.compile(r"cu(Kernel|Func|Library|Module)Get")
_CLOSE = 1000  # nanoseconds between the mark of a stack and the call that it belongs to; seen: at most 100


def busy(found: Attribution) -> pd.DataFrame:
    """A row for each phase and device: busy and idle time of the device while the phase was open on the host.

    Busy is the time in which at least one operation ran, whichever phase launched it: busy and idle add up to `wall`,
    the host time of the phase's ranges in those processes that use the device (for `all`, from the first event to the
    last). Compute and memory time, the gaps and the queue delay are those of the operations that the phase launched:
    a gap lies between two operations of one occurrence with nothing else on the device in it; the queue delay runs
    from the end of the launching call to the start of the first operation that it launched (0 if that was earlier).
    With several processes a step is one process's step.
    """
    operations = found.trace.operations
    start, end, process = (operations[key].to_numpy() for key in ("start", "end", "process"))
    memory = (operations["kind"] == MEMORY).to_numpy()
    first = _first_of_launch(found)
    call_end = found.trace.calls["end"].to_numpy()
    rows = []
    chosen = selections(found)
    devices = {
        device: own[np.argsort(start[own], kind="stable")] for device, own in groups(operations["device"].to_numpy())
    }
    for phase, mask in chosen.items():
        for device, own in devices.items():
            users = np.unique(process[own])
            windows = _windows(found, phase, users)
            wall = int((windows[1] - windows[0]).sum())
            launched = own[mask[own]]
            if not len(launched) and not wall:
                continue
            steps = max((found.steps_of_process.get(int(user), 0) for user in users), default=0) or found.steps
            running = covered_within(union(start[own], end[own]), windows)
            computing, moving = (
                _total(union(start[part], end[part]))
                for part in (launched[~memory[launched]], launched[memory[launched]])
            )
            waiting = launched[first[launched]]
            delay = np.maximum(start[waiting] - call_end[found.launch[waiting]], 0) if len(waiting) else np.empty(0)
            rows.append(
                {"phase": phase, "device": int(device), "device_name": found.trace.devices.get(int(device), "")}
                | {"wall_ms_per_step": wall / MS / steps, "busy_ms_per_step": running / MS / steps}
                | {"idle_ms_per_step": (wall - running) / MS / steps}
                | {"busy_share_of_wall": running / wall if wall else None}
                | {"compute_ms_per_step": computing / MS / steps, "memory_ms_per_step": moving / MS / steps}
                | {"compute_share_of_operations_time": computing / (computing + moving) if computing + moving else None}
                | _statistics("gap", _gaps(start[own], end[own], _occurrence(found, phase)[own]), steps)
                | _statistics("queue_delay", delay, steps)
            )
    return pd.DataFrame(rows)


def _first_of_launch(found: Attribution) -> np.ndarray:
    """Mask of the operations that are the first of their call; none where the host is the device."""
    result = np.zeros(len(found.launch), dtype=bool)
    if not found.trace.device_is_host:
        linked = np.flatnonzero(found.launch >= 0)
        order = linked[np.lexsort((found.trace.operations["start"].to_numpy()[linked], found.launch[linked]))]
        result[order[np.unique(found.launch[order], return_index=True)[1]]] = True
    return result


def _windows(found: Attribution, phase: str, processes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(starts, ends) of the times in which a phase is open in any of the processes."""
    if phase == ALL:
        parts = [part for part in (found.trace.ranges, found.trace.calls, found.trace.operations) if len(part)]
        first, last = min(part["start"].min() for part in parts), max(part["end"].max() for part in parts)
        return np.array([first]), np.array([last])
    own = found.occurrences(phase)
    own = own[own["process"].isin(processes)]
    return union(own["start"].to_numpy(), own["end"].to_numpy())


def _occurrence(found: Attribution, phase: str) -> np.ndarray:
    """For each operation the phase's range that it was launched in, -1 outside all."""
    return np.zeros(len(found.launch), dtype=np.int64) if phase == ALL else found.occurrence[phase]


def covered_within(busy: tuple[np.ndarray, np.ndarray], windows: tuple[np.ndarray, np.ndarray]) -> int:
    """How much of some windows disjoint ascending intervals cover."""
    start, end = busy
    total = np.concatenate([[0], np.cumsum(end - start)])

    def before(time: np.ndarray) -> np.ndarray:
        at = np.searchsorted(start, time, "right")
        return total[at] - np.maximum(np.append(end, 0)[at - 1] - time, 0) * (at > 0)

    return int((before(windows[1]) - before(windows[0])).sum())


def _total(intervals: tuple[np.ndarray, np.ndarray]) -> int:
    return int((intervals[1] - intervals[0]).sum())


def _gaps(start: np.ndarray, end: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Times between what ended last and the next start, if both are of one group (not -1); start is sorted."""
    if len(start) < 2:
        return np.empty(0)
    reach = np.maximum.accumulate(end)
    last = np.maximum.accumulate(np.where(end == reach, np.arange(len(end)), 0))[:-1]
    gaps = start[1:] - reach[:-1]
    return gaps[(gaps > 0) & (group[1:] == group[last]) & (group[1:] >= 0)]


def _statistics(name: str, ns: np.ndarray, steps: int) -> dict:
    """Count and total a step (ms), median, mean and longest (us) of some times."""
    there = len(ns) > 0
    return {
        f"{name}s_per_step": len(ns) / steps,
        f"{name}_ms_per_step": ns.sum() / MS / steps if there else None,
        f"{name}_median_us": np.median(ns) / US if there else None,
        f"{name}_mean_us": ns.mean() / US if there else None,
        f"{name}_max_us": ns.max() / US if there else None,
    }


def api_gaps(found: Attribution) -> pd.DataFrame:
    """A row for each phase: the gaps between one CUDA call's end and the next one's start on the same thread.

    A call belongs to the phase in which it starts; both calls around a gap are of one occurrence. Look-ups of a
    kernel's name or attributes do not count as calls here.
    """
    look_up = np.array([bool(_LOOK_UP.match(name)) for name in found.trace.names], dtype=bool)
    calls = found.trace.calls[~look_up[found.trace.calls["name"].to_numpy()]]
    if found.trace.device_is_host or not len(calls):
        return pd.DataFrame()
    calls = calls.sort_values("start", kind="stable", ignore_index=True)
    start, end, process, thread = (calls[key].to_numpy() for key in ("start", "end", "process", "thread"))
    of_thread = [own for _, own in groups(thread)]
    rows = []
    for phase in [ALL, *found.phases]:
        group = np.zeros(len(calls), dtype=np.int64)
        if phase != ALL:
            group = locate(found.occurrences(phase), process, thread, start, np.ones(len(calls), dtype=bool))[0]
        gaps = np.concatenate([_gaps(start[own], end[own], group[own]) for own in of_thread])
        rows.append(
            {"phase": phase, "calls_per_step": int((group >= 0).sum()) / found.steps}
            | _statistics("gap", gaps, found.steps)
        )
    return pd.DataFrame(rows)


def api_calls(found: Attribution) -> pd.DataFrame:
    """A row for each CUDA call by name, the longest in total first."""
    return pd.DataFrame() if found.trace.device_is_host else _by_name(found, found.trace.calls, "api")


def os_calls(found: Attribution) -> pd.DataFrame:
    """A row for each call into the operating system by name, the longest in total first."""
    return _by_name(found, found.trace.os_calls, "os_call")


def _by_name(found: Attribution, calls: pd.DataFrame, what: str) -> pd.DataFrame:
    if not len(calls):
        return pd.DataFrame()
    length = (calls["end"] - calls["start"]).groupby(calls["name"])
    table = length.agg(["size", "sum", "mean", "median", "max"]).sort_values("sum", ascending=False)
    return pd.DataFrame(
        {
            "name": [found.trace.names[code] for code in table.index],
            "calls_per_step": table["size"].to_numpy() / found.steps,
            "total_ms": table["sum"].to_numpy() / MS,
            "ms_per_step": table["sum"].to_numpy() / MS / found.steps,
            f"share_of_{what}_time": table["sum"].to_numpy() / max(table["sum"].sum(), 1),
            **{f"{key}_us": table[key].to_numpy() / US for key in ("mean", "median", "max")},
        }
    )


def python_lines(found: Attribution) -> pd.DataFrame:
    """A row for each line of Python whose calls launched operations; operations without a known line are omitted.

    The stack of a call was taken at its start, by the same thread.
    """
    lines, calls = found.trace.lines, found.trace.calls
    linked = np.flatnonzero(found.launch >= 0)
    start, thread = (calls[key].to_numpy()[found.launch[linked]] for key in ("start", "thread"))
    at = np.full(len(linked), -1)
    for number, own in lines.groupby("thread"):
        here = np.flatnonzero(thread == number)
        times = own["time"].to_numpy()
        latest = np.searchsorted(times, start[here], "right") - 1
        near = (latest >= 0) & (start[here] - times[np.maximum(latest, 0)] <= _CLOSE)
        at[here[near]] = own.index.to_numpy()[latest[near]]
    known = at >= 0
    if not known.any():
        return pd.DataFrame()
    table = pd.DataFrame({key: lines[key].to_numpy()[at[known]] for key in ("file", "line")})
    table = table.assign(ns=found.durations[linked][known]).groupby(["file", "line"])["ns"].agg(["size", "sum"])
    table = table.sort_values("sum", ascending=False).reset_index()
    return pd.DataFrame(
        {
            "file": [found.trace.names[code] for code in table["file"]],
            "line": table["line"],
            "operations_per_step": table["size"] / found.steps,
            "gpu_ms_per_step": table["sum"] / MS / found.steps,
            "share_of_gpu_time": table["sum"] / max(found.durations.sum(), 1),
        }
    )
