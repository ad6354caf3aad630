"""What happens inside the named ranges of a step, on the host and on the GPU."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from stepscope.trace import attention, backward_modules, kernel_names
from stepscope.trace.attribution import Attribution
from stepscope.trace.events import SECOND
from stepscope.trace.kernel_categories import CATEGORIES
from stepscope.trace.nesting import groups, inside_itself, union

_TIMES = ("host", "gpu", "matmul")
MOST_CALLS = 30


def modules(found: Attribution) -> pd.DataFrame:
    """A row for each name of a range that is no phase, and below for each CUDA call by name; a
    step's.

    Ranges (`kind` module, or operator: autograd's own): what their thread did and launched while
    they were open, and beside it (`any_thread`) what any thread of the process launched then. Where
    a range stands in the forward pass only those occurrences count: activation checkpointing runs
    them again. `attention` is true for a whole attention. Backward columns are of the backward
    functions that the module's operators made (see backward_modules.py).
    """
    times = range_times(found)
    codes = found.trace.ranges["name"].to_numpy()
    forward = attention.in_forward(found)
    kept = ~found.is_phase[codes] & (forward | ~np.isin(codes, codes[forward]))
    table = by_name(found, times, kept)
    backward = backward_modules.of_modules(found)
    if len(backward):
        table = table.join(backward, on="module") if len(table) else table
        alone = backward.drop(
            index=list(table["module"]) if len(table) else [], errors="ignore"
        ).reset_index()
        table = pd.concat(
            [
                table,
                alone.assign(
                    kind="module",
                    attention=False,
                    parent="",
                ),
            ],
            ignore_index=True,
        )
    return pd.concat([table, cuda_calls(found)], ignore_index=True)


def cuda_calls(found: Attribution) -> pd.DataFrame:
    """CUDA calls by name, those of the most time first."""
    calls = found.trace.calls
    if found.trace.device_is_host or not len(calls):
        return pd.DataFrame()
    length = (calls["end"] - calls["start"]).groupby(calls["name"]).agg(["size", "sum"])
    length = length.sort_values("sum", ascending=False, kind="stable").head(MOST_CALLS)
    return pd.DataFrame(
        {
            "kind": "call",
            "module": [found.trace.names[code] for code in length.index],
            "attention": False,
            "parent": "",
            "calls": length["size"].to_numpy() / found.steps,
            "host_time": length["sum"].to_numpy() / SECOND / found.steps,
        }
    )


def by_any_thread(found: Attribution, kept: np.ndarray) -> np.ndarray:
    """For each name: ns of all operations that any thread of a process launched while it had a
    range of that name open, each once; of the kept ranges (a mask)."""
    ranges = found.trace.ranges[kept]
    code, start, end = (ranges[key].to_numpy() for key in ("name", "start", "end"))
    result = np.zeros(len(found.trace.names), dtype=np.int64)
    for own, within in _launches(found, ranges["process"], found.launch_process):
        for name, part in groups(code[own]):
            result[name] += within(*union(start[own[part]], end[own[part]]), found.durations).sum()
    return result


def _launches(
    found: Attribution, owner: pd.Series, of_launch: np.ndarray
) -> Iterator[tuple[np.ndarray, Callable]]:
    """For each owner of ranges (a process or a thread) that launched anything: its ranges, and a
    function from starts, ends and values of operations to the sums of what it launched in each of
    these times, a row a value."""
    linked = np.flatnonzero(found.launch >= 0)
    linked = linked[np.argsort(found.launch_time[linked], kind="stable")]
    launches_of = {key: linked[part] for key, part in groups(of_launch[linked])}
    for key, own in groups(owner.to_numpy()):
        launched = launches_of.get(key, linked[:0])
        times = found.launch_time[launched]

        def within(starts, ends, *values, launched=launched, times=times) -> np.ndarray:
            first = np.searchsorted(times, starts, "left")
            last = np.searchsorted(times, ends, "left")
            totals = [np.append(0, np.cumsum(each[launched])) for each in values]
            return np.array([total[last] - total[first] for total in totals])

        if len(launched):
            yield own, within


def by_name(found: Attribution, times: pd.DataFrame, kept: np.ndarray) -> pd.DataFrame:
    """A row for each name of the kept ranges (a mask), in the order of their first start."""
    if not kept.any():
        return pd.DataFrame()
    names, whole, steps = found.trace.names, attention.attention_code(found), found.steps
    order = np.argsort(found.trace.ranges["start"].to_numpy()[kept], kind="stable")
    table = times[kept].iloc[order]
    exclusive = table.groupby("name", sort=False)["host_exclusive"].sum()
    # What lies within a range of its own name is a part of that one's time and kernels.
    table = table[~table["inside_itself"]]
    of_name = table.groupby("name", sort=False)
    count = of_name.size()
    total = of_name[[*_TIMES, "kernels"]].sum()
    pairs = table.groupby(["name", "parent"]).size()
    parent = pairs.groupby(level="name").idxmax().map(lambda pair: pair[1])[count.index]
    top = top_kernels(found, kept)
    gpu = total["gpu"].to_numpy()
    best = np.array([top.get(code, ("", 0))[1] for code in count.index])
    seconds = {
        f"{key}_time": total[key].to_numpy() / SECOND / steps for key in ("host", "gpu", "matmul")
    }
    return pd.DataFrame(
        {
            "kind": np.where(found.operator[count.index], "operator", "module"),
            "module": [names[code] for code in count.index],
            "attention": [code == whole for code in count.index],
            "parent": [names[code] if code >= 0 else "" for code in parent],
            "calls": count.to_numpy() / steps,
            **seconds,
            "host_exclusive": exclusive[count.index].to_numpy() / SECOND / steps,
            "kernels": total["kernels"].to_numpy() / steps,
            "top_kernel": [top.get(code, ("", 0))[0] for code in count.index],
            "top_share": np.divide(best, gpu, np.full(len(gpu), np.nan), where=gpu > 0),
            "any_thread_gpu_time": by_any_thread(found, kept)[count.index] / SECOND / steps,
        }
    )


def range_times(found: Attribution) -> pd.DataFrame:
    """For each range: codes of its name and its parent's (-1 without one), and its time (ns) and
    kernels.

    host_exclusive is without the ranges directly inside; matmul is the time of the matrix products
    alone.
    """
    codes, parent, inner = found.trace.ranges["name"].to_numpy(), found.parent, found.parent >= 0
    kernels, gpu, matmul = inclusive(found)
    inside = np.bincount(parent[inner], found.lengths[inner], len(codes)).astype(np.int64)
    return pd.DataFrame(
        {
            "name": codes,
            "parent": np.where(inner, np.append(codes, -1)[parent], -1),
            "inside_itself": inside_itself(parent, codes),
            "host": found.lengths,
            "host_exclusive": found.lengths - inside,
            "gpu": gpu,
            "matmul": matmul,
            "kernels": kernels,
        }
    )


def inclusive(found: Attribution) -> np.ndarray:
    """What each range's thread launched while it was open: rows of kernels, ns of all operations,
    ns of matmul."""
    ranges = found.trace.ranges
    starts = ranges["start"].to_numpy()
    ends = ranges["end"].to_numpy()
    matmul_time = found.durations * (found.category == CATEGORIES.index("matmul"))
    result = np.zeros((3, len(ranges)), dtype=np.int64)
    for own, within in _launches(found, ranges["thread"], found.launch_thread):
        result[:, own] = within(
            starts[own], ends[own], found.is_kernel, found.durations, matmul_time
        )
    return result


def top_kernels(found: Attribution, kept: np.ndarray) -> dict[int, tuple[str, int]]:
    """Name code → (short name, nanoseconds) of the kernel that takes the most GPU time in the kept
    ranges (a mask)."""
    codes = found.trace.ranges["name"].to_numpy()
    here = np.flatnonzero((found.innermost >= 0) & found.is_kernel)
    launched = pd.DataFrame(
        {
            "at": found.innermost[here],
            "kernel": found.trace.operations["name"].to_numpy()[here],
            "ns": found.durations[here],
        }
    )
    alike = launched.groupby(["at", "kernel"], as_index=False)["ns"].sum()
    # A range within one of its own name counts once: the outermost is taken.
    counts = kept & ~inside_itself(found.parent, codes)
    parts = []
    while len(alike):
        at = alike["at"].to_numpy()
        part = alike.assign(name=codes[at])[counts[at]]
        parts.append(part.groupby(["name", "kernel"], as_index=False)["ns"].sum())
        around = found.parent[at]
        alike = alike.assign(at=around)[around >= 0]
    if not parts:
        return {}
    total = pd.concat(parts).groupby(["name", "kernel"])["ns"].sum()
    best = total.groupby(level="name").idxmax()
    return {
        int(name): (kernel_names.describe(found.trace.names[code]).short, int(total[name, code]))
        for name, (_, code) in best.items()
    }
