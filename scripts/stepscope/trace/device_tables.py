"""How busy the devices were, how long the gaps are, and what the host spent on CUDA and operating system calls."""

import re

import numpy as np
import pandas as pd

from stepscope.trace.attribution import Attribution
from stepscope.trace.events import MEMORY
from stepscope.trace.phase_tables import ALL, MS, US, selections

_PYTHON_LINE = re.compile(r"(?P<file>[^\s:()\"']+\.py)[:\"', ]+(?:line )?(?P<line>\d+)")


def busy(found: Attribution) -> pd.DataFrame:
    """A row for each phase and device: busy and idle time of the device within the phase's host time.

    Busy is the time in which at least one operation ran. `wall_ms` is the host time of the phase's ranges, for `all` the
    time from the first event to the last. Gaps are those between one operation's end and the next one's start inside
    one occurrence of the phase; the queue delay runs from the end of the launching call to the operation's start.
    """
    operations = found.trace.operations
    start, end = operations["start"].to_numpy(), operations["end"].to_numpy()
    memory = (operations["kind"] == MEMORY).to_numpy()
    call_end = found.trace.calls["end"].to_numpy()
    rows = []
    for phase, mask in selections(found).items():
        wall = _wall(found, phase)
        for device in np.unique(operations["device"].to_numpy()[mask]):
            own = np.flatnonzero(mask & (operations["device"] == device).to_numpy())
            own = own[np.argsort(start[own], kind="stable")]
            gaps = _gaps(start[own], end[own], _occurrence(found, phase, own))
            linked = own[found.launch[own] >= 0]
            delay = start[linked] - call_end[found.launch[linked]] if not found.trace.device_is_host else np.empty(0)
            total = covered(start[own], end[own])
            computing = covered(start[own][~memory[own]], end[own][~memory[own]])
            moving = covered(start[own][memory[own]], end[own][memory[own]])
            rows.append(
                {"phase": phase, "device": int(device), "device_name": found.trace.devices.get(int(device), "")}
                | {"wall_ms_per_step": wall / MS / found.steps, "busy_ms_per_step": total / MS / found.steps}
                | {"idle_ms_per_step": max(wall - total, 0) / MS / found.steps}
                | {"busy_share_of_wall": total / wall if wall else None}
                | {"compute_ms_per_step": computing / MS / found.steps, "memory_ms_per_step": moving / MS / found.steps}
                | {"compute_share_of_operations_time": computing / (computing + moving) if computing + moving else None}
                | _statistics("gap", gaps, found.steps)
                | _statistics("queue_delay", delay, found.steps)
            )
    return pd.DataFrame(rows)


def _wall(found: Attribution, phase: str) -> int:
    if phase != ALL:
        own = found.occurrences(phase)
        return int((own["end"] - own["start"]).sum())
    parts = [part for part in (found.trace.ranges, found.trace.calls, found.trace.operations) if len(part)]
    return int(max(part["end"].max() for part in parts) - min(part["start"].min() for part in parts)) if parts else 0


def _occurrence(found: Attribution, phase: str, own: np.ndarray) -> np.ndarray:
    """Number of the phase's occurrence that each operation was launched in."""
    if phase == ALL:
        return np.zeros(len(own), dtype=np.int64)
    starts = np.sort(found.occurrences(phase)["start"].to_numpy())
    return np.searchsorted(starts, found.launch_time[own], "right")


def covered(start: np.ndarray, end: np.ndarray) -> int:
    """Length of the union of intervals."""
    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    before = np.concatenate([[start[0]], np.maximum.accumulate(end)[:-1]])
    return int(np.maximum(end - np.maximum(start, before), 0).sum())


def _gaps(start: np.ndarray, end: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Nanoseconds between what ended last and the next start, within one group; start is sorted."""
    if len(start) < 2:
        return np.empty(0)
    gaps = start[1:] - np.maximum.accumulate(end)[:-1]
    return gaps[(gaps > 0) & (group[1:] == group[:-1])]


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
    """A row for each phase: the gaps between one CUDA call's end and the next one's start on the same thread."""
    calls = found.trace.calls
    rows = []
    for phase in [ALL, *found.phases] if len(calls) and not found.trace.device_is_host else []:
        parts, count = [], 0
        for thread, own in calls.sort_values("start").groupby("thread"):
            group = _in_phase(found, phase, own, thread)
            inside = group >= 0
            count += int(inside.sum())
            parts.append(_gaps(own["start"].to_numpy()[inside], own["end"].to_numpy()[inside], group[inside]))
        gaps = np.concatenate(parts)
        rows.append(
            {"phase": phase, "calls_per_step": count / found.steps} | _statistics("gap", gaps, found.steps)
        )
    return pd.DataFrame(rows)


def _in_phase(found: Attribution, phase: str, calls: pd.DataFrame, thread: int) -> np.ndarray:
    """Number of the phase's occurrence in which each call of a thread starts, -1 outside."""
    if phase == ALL:
        return np.zeros(len(calls), dtype=np.int64)
    process = calls["process"].iloc[0]
    own = found.occurrences(phase)
    own = own[own["process"] == process].sort_values("start")
    if not len(own):
        return np.full(len(calls), -1)
    at = np.searchsorted(own["start"].to_numpy(), calls["start"].to_numpy(), "right") - 1
    inside = (at >= 0) & (calls["start"].to_numpy() < own["end"].to_numpy()[np.maximum(at, 0)])
    return np.where(inside, at, -1)


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
    """A row for each line of Python whose calls launched operations, by the innermost Python frame of the backtrace."""
    frames, names = found.trace.frames, found.trace.names
    if not len(frames):
        return pd.DataFrame()
    lines: dict[int, str] = {}
    for row in frames.sort_values("depth").itertuples():
        if row.callchain not in lines:
            text = f"{names[row.symbol]} {names[row.module]}"
            told = _PYTHON_LINE.search(text)
            if told:
                lines[row.callchain] = f"{told['file']}:{told['line']}"
    callchain = found.trace.calls["callchain"].to_numpy()
    linked = np.flatnonzero(found.launch >= 0)
    line = [lines.get(int(callchain[call]), "") for call in found.launch[linked]]
    table = pd.DataFrame({"line": line, "ns": found.durations[linked]}).groupby("line")["ns"].agg(["size", "sum"])
    table = table[table.index != ""].sort_values("sum", ascending=False)
    return pd.DataFrame(
        {
            "file": [text.rsplit(":", 1)[0] for text in table.index],
            "line": [int(text.rsplit(":", 1)[1]) for text in table.index],
            "operations_per_step": table["size"].to_numpy() / found.steps,
            "gpu_ms_per_step": table["sum"].to_numpy() / MS / found.steps,
            "share_of_gpu_time": table["sum"].to_numpy() / max(found.durations.sum(), 1),
        }
    )
