"""What happens inside the named ranges of a step, on the host and on the GPU."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from . import attention, backward_modules, kernel_names
from .attribution import Attribution
from .events import SECOND
from .nesting import arrays, groups, inside_itself, launched_by, union

MOST_CALLS = 50


def modules(found: Attribution) -> pd.DataFrame:
    """A row for each name of a range that is no phase, and below for each CUDA call by name; a
    step's.

    Ranges (`kind` module, or operator: autograd's own): what their thread did and launched while
    they were open, and beside it (`any_thread`) what any thread of the process launched then. Where
    a range stands in the forward pass only those occurrences count: activation checkpointing runs
    them again. `attention` is true for a whole attention. Backward columns are of the backward
    functions that the module's operators made (see backward_modules.py).
    """
    codes = found.codes
    forward = attention.in_forward(found)
    kept = ~found.is_phase[codes] & (forward | ~np.isin(codes, codes[forward]))
    table = by_name(found, kept)
    backward = backward_modules.of_modules(found)
    alone = backward.drop(index=list(table["module"]), errors="ignore").reset_index()
    parts = [
        table.join(backward, on="module"),
        alone.assign(kind="module", attention=False, parent=""),
        *calls(found),
    ]
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame()


def calls(found: Attribution) -> Iterator[pd.DataFrame]:
    """CUDA calls by name, and what else the host did, lines with what their calls launched; of each
    kind those of the most time first."""
    trace = found.trace
    if trace.device_is_host:
        return
    work = trace.operations.assign(gpu_time=found.durations, kernels=found.is_kernel)
    launched = work.groupby(["process", "correlation"])[["gpu_time", "kernels"]].sum()
    # What a call launched stands with the kernels, and with the line that it is of.
    nothing = launched.iloc[:0]
    for kind, made in {"call": trace.calls, **trace.others}.items():
        table = made.join(nothing if kind == "call" else launched, on=["process", "correlation"])
        table = table.assign(calls=1, host_time=made["end"] - made["start"])
        times, counts = ["host_time", "gpu_time"], ["calls", "kernels"]
        total = table.groupby("name")[times + counts].sum(min_count=1)
        total = total.sort_values("host_time", ascending=False, kind="stable").head(MOST_CALLS)
        total = found.a_step(total[times]).join(total[counts] / found.steps)
        names = found.named(total.index)
        yield total.assign(kind=kind, module=names, attention=False, parent="")


def by_name(found: Attribution, kept: np.ndarray) -> pd.DataFrame:
    """A row for each name of the kept ranges (a mask), in the order of their first start."""
    if not kept.any():
        return pd.DataFrame(columns=["module"])
    table = range_times(found)[kept].sort_values("start", kind="stable")
    exclusive = table.groupby("name")["host_exclusive"].sum()
    # What lies within a range of its own name is a part of that one's time and kernels.
    table = table[~table["inside_itself"]]
    of_name = table.groupby("name", sort=False)
    calls = of_name.size()
    pairs = table.groupby(["name", "parent"]).size()
    parent = pairs.groupby(level="name").idxmax().str[1].astype(int)
    times = of_name[["host_time", "gpu_time"]].sum()
    times = found.a_step(times.assign(host_exclusive=exclusive))
    each = of_name["gpu_time"].agg(gpu_min="min", gpu_max="max", gpu_std="std") / SECOND
    nothing = {"top_kernel": "", "top": 0, "top_calls": 0}
    top = top_kernels(found, kept).reindex(calls.index).astype({"top_kernel": "str"})
    top = top.fillna(nothing)
    rows = {
        "kind": np.where(found.operator[calls.index], "operator", "module"),
        "module": found.named(calls.index),
        "attention": calls.index == attention.attention_code(found),
        "parent": found.named(parent[calls.index]),
        "calls": calls / found.steps,
        **times,
        "kernels": of_name["kernels"].sum() / found.steps,
        **each,
        "top_kernel": top["top_kernel"],
        "top_calls": top["top_calls"] / found.steps,
        "top_share": found.a_step(top["top"]) / times["gpu_time"].where(times["gpu_time"] > 0),
        "any_thread_gpu_time": found.a_step(by_any_thread(found, kept)[calls.index]),
    }
    return pd.DataFrame(rows).reset_index(drop=True)


def range_times(found: Attribution) -> pd.DataFrame:
    """For each range: its start, the codes of its name and of its parent's (-1 without one), its
    time (ns) and kernels.

    host_exclusive is without the ranges directly inside. gpu_time and kernels: what its thread
    launched while it was open.
    """
    codes, parent, inner = found.codes, found.parent, found.parent >= 0
    start, end, thread = arrays(found.trace.ranges, "start", "end", "thread")
    launched = np.zeros((2, len(codes)), dtype=np.int64)
    for own, at in launched_by(thread, found.launch_thread, found.in_time):
        times = start[own], end[own]
        launched[:, own] = _sums(found.launch_time, at, times, found.is_kernel, found.durations)
    inside = np.bincount(parent[inner], found.lengths[inner], len(codes)).astype(np.int64)
    return pd.DataFrame(
        {
            "start": start,
            "name": codes,
            "parent": np.where(inner, np.append(codes, -1)[parent], -1),
            "inside_itself": inside_itself(parent, codes),
            "host_time": found.lengths,
            "host_exclusive": found.lengths - inside,
            "kernels": launched[0],
            "gpu_time": launched[1],
        }
    )


def by_any_thread(found: Attribution, kept: np.ndarray) -> np.ndarray:
    """For each name: ns of all operations that any thread of a process launched while it had a
    range of that name open, each once; of the kept ranges (a mask)."""
    code, start, end, process = arrays(found.trace.ranges[kept], "name", "start", "end", "process")
    result = np.zeros(len(found.trace.names), dtype=np.int64)
    for own, at in launched_by(process, found.launch_process, found.in_time):
        for name, part in groups(code[own]):
            times = union(start[own[part]], end[own[part]])
            result[name] += _sums(found.launch_time, at, times, found.durations).sum()
    return result


def _sums(
    launch_time: np.ndarray, at: np.ndarray, times: tuple[np.ndarray, np.ndarray], *values
) -> np.ndarray:
    """Sums of values over the operations (positions, in the order of their launch) that were
    launched within each of some times (starts, ends): a row a value."""
    first, last = np.searchsorted(launch_time[at], times)
    totals = [np.append(0, np.cumsum(each[at])) for each in values]
    return np.array([total[last] - total[first] for total in totals])


def top_kernels(found: Attribution, kept: np.ndarray) -> pd.DataFrame:
    """Of each name's code, in the kept ranges (a mask), the kernel of the most GPU time: its short
    name as `top_kernel`, its nanoseconds as `top` and launches as `top_calls`."""
    # A range within one of its own name counts once: the outermost is taken.
    counts = kept & ~inside_itself(found.parent, found.codes)
    launched = {"at": found.innermost, "name": found.trace.operations["name"]}
    rows = pd.DataFrame(launched | {"ns": found.durations, "calls": 1})[found.is_kernel]
    parts: list[pd.DataFrame] = []
    while len(rows) or not parts:  # from the innermost range outwards
        rows = rows[rows["at"] >= 0]
        own = rows.assign(code=found.codes[rows["at"]])[counts[rows["at"]]]
        parts.append(own.groupby(["code", "name"])[["ns", "calls"]].sum())
        rows = rows.assign(at=found.parent[rows["at"]])
    total = pd.concat(parts).groupby(level=["code", "name"]).sum().reset_index("name")
    best = total.sort_values("ns", ascending=False, kind="stable")
    best = best[~best.index.duplicated()]
    short = kernel_names.shorts(found.named(best["name"]))
    told = {"top_kernel": short, "top": best["ns"], "top_calls": best["calls"]}
    return pd.DataFrame(told, index=best.index)
