"""What happens inside the named ranges of a step, on the host and on the GPU."""

import numpy as np
import pandas as pd

from stepscope.trace import kernel_names
from stepscope.trace.attribution import Attribution
from stepscope.trace.categories import category_of
from stepscope.trace.events import MS, US
from stepscope.trace.nesting import groups, union

_TIMES = ("host", "host_exclusive", "gpu", "gpu_exclusive", "gpu_matmul")
_COUNTS = ("kernels", "kernels_exclusive")


def ranges(found: Attribution, times: pd.DataFrame) -> pd.DataFrame:
    """A row for each name of a range that is not a phase: what its thread did and launched while it was open, and
    beside it what any thread of the process launched then.

    times: of range_times(). `_us` columns are of one occurrence: the spread over the layers, where a range stands in
    each.
    """
    kept = ~found.is_phase[times["name"].to_numpy()]
    table = by_name(found, times, kept)
    if table.empty:
        return table
    kernels, gpu = by_any_thread(found, kept)
    place = {name: code for code, name in enumerate(found.trace.names)}
    codes = [place[name] for name in table["range"]]
    return table.assign(
        kernels_by_any_thread_per_step=kernels[codes] / found.steps,
        gpu_by_any_thread_ms_per_step=gpu[codes] / MS / found.steps,
    )


def by_any_thread(found: Attribution, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each name: (kernels, ns of all operations) that any thread of a process launched while it had a range of that
    name open, each once; of the kept ranges (a mask)."""
    ranges, names = found.trace.ranges, len(found.trace.names)
    code, process, start, end = (ranges[key].to_numpy()[kept] for key in ("name", "process", "start", "end"))
    kernels, gpu = np.zeros(names, dtype=np.int64), np.zeros(names, dtype=np.int64)
    linked = np.flatnonzero(found.launch >= 0)
    linked = linked[np.argsort(found.launch_time[linked], kind="stable")]
    launches_of = {key: linked[part] for key, part in groups(found.launch_process[linked])}
    for key, own in groups(process):
        launched = launches_of.get(key)
        if launched is None:
            continue
        times = found.launch_time[launched]
        totals = [np.append(0, np.cumsum(values[launched])) for values in (found.is_kernel, found.durations)]
        for name, part in groups(code[own]):
            starts, ends = union(start[own[part]], end[own[part]])
            first, last = np.searchsorted(times, starts, "left"), np.searchsorted(times, ends, "left")
            for result, total in zip((kernels, gpu), totals, strict=True):
                result[name] += int((total[last] - total[first]).sum())
    return kernels, gpu


def by_name(found: Attribution, times: pd.DataFrame, kept: np.ndarray) -> pd.DataFrame:
    """A row for each name of the kept ranges (a mask), in the order of their first start."""
    names = found.trace.names
    table = times[kept]
    if table.empty:
        return pd.DataFrame()
    table = table.iloc[np.argsort(found.trace.ranges["start"].to_numpy()[kept], kind="stable")]
    of_name = table.groupby("name", sort=False)
    count, total = of_name.size(), of_name[[*_TIMES, *_COUNTS]].sum()
    parent = (
        table.groupby(["name", "parent"]).size().groupby(level="name").idxmax().map(lambda pair: pair[1])[count.index]
    )
    top = top_kernels(found, kept)
    kernel_time = np.array([top.get(code, ("", 0))[1] for code in count.index])
    gpu = total["gpu"].to_numpy()
    return pd.DataFrame(
        {
            "range": [names[code] for code in count.index],
            "parent": [names[code] if code >= 0 else "" for code in parent],
            "operator": found.operator[count.index],
            "count": count.to_numpy(),
            "count_per_step": count.to_numpy() / found.steps,
            **{f"{key}_ms_per_step": total[key].to_numpy() / MS / found.steps for key in _TIMES},
            **{f"{key}_per_step": total[key].to_numpy() / found.steps for key in _COUNTS},
            **_spread("host", of_name["host"]),
            **_spread("gpu", of_name["gpu"]),
            "top_kernel": [top.get(code, ("", 0))[0] for code in count.index],
            "top_kernel_share_of_range_gpu_time": np.divide(kernel_time, gpu, np.full(len(gpu), np.nan), where=gpu > 0),
        }
    )


def _spread(side: str, values) -> dict[str, np.ndarray]:
    found = values.agg(["mean", "median", "min", "max", "std"])
    return {f"{side}_{key}_us": found[key].to_numpy() / US for key in found}


def range_times(found: Attribution) -> pd.DataFrame:
    """For each range: codes of its name and its parent's (-1 without one), and its time (ns) and kernels.

    The exclusive ones are without those of the ranges directly inside; gpu_matmul is that of the matmul kernels alone.
    """
    codes, parent = found.trace.ranges["name"].to_numpy(), found.parent
    kernels, gpu, matmul = inclusive(found)
    inner = parent >= 0

    def exclusive(values: np.ndarray) -> np.ndarray:
        return values - np.bincount(parent[inner], values[inner], len(values)).astype(np.int64)

    return pd.DataFrame(
        {"name": codes, "parent": np.where(inner, np.append(codes, -1)[parent], -1)}
        | {"host": found.lengths, "host_exclusive": exclusive(found.lengths)}
        | {"gpu": gpu, "gpu_exclusive": exclusive(gpu), "gpu_matmul": matmul}
        | {"kernels": kernels, "kernels_exclusive": exclusive(kernels)}
    )


def inclusive(found: Attribution) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What each range's thread launched while it was open: (kernels, ns of all operations, ns of matmul)."""
    ranges = found.trace.ranges
    starts, ends = ranges["start"].to_numpy(), ranges["end"].to_numpy()
    is_matmul = np.array([category_of(name) == "matmul" for name in found.trace.names], dtype=bool)
    matmul_time = found.durations * is_matmul[found.trace.operations["name"].to_numpy()]
    count, time, matmul = (np.zeros(len(ranges), dtype=np.int64) for _ in range(3))
    linked = np.flatnonzero(found.launch >= 0)
    linked = linked[np.argsort(found.launch_time[linked], kind="stable")]
    launches_of = {thread: linked[part] for thread, part in groups(found.launch_thread[linked])}
    for thread, own in groups(ranges["thread"].to_numpy()):
        if thread not in launches_of:
            continue
        launched = launches_of[thread]
        times = found.launch_time[launched]
        first, last = np.searchsorted(times, starts[own], "left"), np.searchsorted(times, ends[own], "left")
        for result, values in ((count, found.is_kernel), (time, found.durations), (matmul, matmul_time)):
            total = np.concatenate([[0], np.cumsum(values[launched])])
            result[own] = total[last] - total[first]
    return count, time, matmul


def top_kernels(found: Attribution, kept: np.ndarray) -> dict[int, tuple[str, int]]:
    """Name code → (short name, nanoseconds) of the kernel that takes the most GPU time in the kept ranges (a mask)."""
    codes = found.trace.ranges["name"].to_numpy()
    here = np.flatnonzero((found.innermost >= 0) & found.is_kernel)
    at, kernel, ns = found.innermost[here], found.trace.operations["name"].to_numpy()[here], found.durations[here]
    alike = pd.DataFrame({"at": at, "kernel": kernel, "ns": ns}).groupby(["at", "kernel"], as_index=False)["ns"].sum()
    at, kernel, ns = (alike[key].to_numpy() for key in ("at", "kernel", "ns"))
    seen: list[np.ndarray] = []  # the names met so far: a range within one of its own name counts once
    parts = []
    while len(at):
        name = np.where(kept[at], codes[at], -1)
        fresh = name >= 0
        for before in seen:
            fresh &= before != name
        part = pd.DataFrame({"name": name, "kernel": kernel, "ns": ns})[fresh]
        parts.append(part.groupby(["name", "kernel"], as_index=False)["ns"].sum())
        on = found.parent[at] >= 0
        seen = [before[on] for before in [*seen, name]]
        at, kernel, ns = found.parent[at][on], kernel[on], ns[on]
    if not parts:
        return {}
    total = pd.concat(parts).groupby(["name", "kernel"])["ns"].sum()
    best = total.groupby(level="name").idxmax()
    return {
        int(name): (kernel_names.describe(found.trace.names[code]).short, int(total[name, code]))
        for name, (_, code) in best.items()
    }
