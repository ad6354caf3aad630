"""What happens inside the named ranges of a step, on the host and on the GPU."""

import numpy as np
import pandas as pd

from stepscope.trace import kernel_names
from stepscope.trace.attribution import Attribution
from stepscope.trace.events import KERNEL
from stepscope.trace.phase_tables import MS, US, child_time, is_operator


def ranges(found: Attribution) -> pd.DataFrame:
    """A row for each name of a range that is no phase: what its thread did and launched while it was open.

    `_us` columns are of one occurrence: the spread over the layers, where a range stands in each.
    """
    trace = found.trace
    if not len(trace.ranges):
        return pd.DataFrame()
    count, gpu = inclusive(found)
    length = (trace.ranges["end"] - trace.ranges["start"]).to_numpy()
    inside = child_time(found)
    has_parent = found.parent >= 0
    inner_count = np.bincount(found.parent[has_parent], count[has_parent], len(count)).astype(np.int64)
    inner_gpu = np.bincount(found.parent[has_parent], gpu[has_parent], len(gpu)).astype(np.int64)
    codes = trace.ranges["name"].to_numpy()
    parent_codes = np.where(has_parent, codes[np.maximum(found.parent, 0)], -1)
    table = pd.DataFrame(
        {"name": codes, "parent": parent_codes, "host": length, "host_exclusive": length - inside, "gpu": gpu}
        | {"gpu_exclusive": gpu - inner_gpu, "kernels": count, "kernels_exclusive": count - inner_count}
    )
    phase_codes = {trace.names.index(name) for name in found.phases}
    top = top_kernels(found)
    rows = []
    for code, part in table.groupby("name"):
        if code in phase_codes:
            continue
        parent = part["parent"].mode().iloc[0]
        name, kernel_time = top.get(code, ("", 0))
        total = part["gpu"].sum()
        rows.append(
            {"range": trace.names[code], "parent": trace.names[parent] if parent >= 0 else ""}
            | {"operator": is_operator(trace.names[code]), "count": len(part), "count_per_step": len(part) / found.steps}
            | {f"{key}_ms_per_step": part[key].sum() / MS / found.steps for key in ("host", "host_exclusive")}
            | {f"{key}_ms_per_step": part[key].sum() / MS / found.steps for key in ("gpu", "gpu_exclusive")}
            | {f"{key}_per_step": part[key].sum() / found.steps for key in ("kernels", "kernels_exclusive")}
            | {f"host_{key}_us": value for key, value in _spread(part["host"]).items()}
            | {f"gpu_{key}_us": value for key, value in _spread(part["gpu"]).items()}
            | {"top_kernel": name, "top_kernel_share_of_range_gpu_time": kernel_time / total if total else None}
        )
    return pd.DataFrame(rows)


def _spread(values: pd.Series) -> dict:
    found = {name: getattr(values, name)() / US for name in ("mean", "median", "min", "max")}
    return found | {"std": values.std() / US if len(values) > 1 else None}


def inclusive(found: Attribution) -> tuple[np.ndarray, np.ndarray]:
    """(kernels, nanoseconds of all operations) that each range's thread launched while the range was open."""
    ranges, operations = found.trace.ranges, found.trace.operations
    count, time = np.zeros(len(ranges), dtype=np.int64), np.zeros(len(ranges), dtype=np.int64)
    is_kernel, durations = (operations["kind"] == KERNEL).to_numpy(), found.durations
    linked = found.launch >= 0
    threads = ranges["thread"].to_numpy()
    for thread in np.unique(threads):
        own = np.flatnonzero(threads == thread)
        launches = np.flatnonzero(linked & (found.launch_thread == thread))
        launches = launches[np.argsort(found.launch_time[launches], kind="stable")]
        times = found.launch_time[launches]
        kernels = np.concatenate([[0], np.cumsum(is_kernel[launches])])
        ns = np.concatenate([[0], np.cumsum(durations[launches])])
        first = np.searchsorted(times, ranges["start"].to_numpy()[own], "left")
        last = np.maximum(np.searchsorted(times, ranges["end"].to_numpy()[own], "left"), first)
        count[own], time[own] = kernels[last] - kernels[first], ns[last] - ns[first]
    return count, time


def top_kernels(found: Attribution) -> dict[int, tuple[str, int]]:
    """Range's name code → (short name, nanoseconds) of the kernel that takes the most GPU time in such ranges."""
    codes = found.trace.ranges["name"].to_numpy()
    operations = found.trace.operations
    here = np.flatnonzero((found.innermost >= 0) & (operations["kind"] == KERNEL).to_numpy())
    at = found.innermost[here]
    kernel, ns = operations["name"].to_numpy()[here], found.durations[here]
    seen: list[np.ndarray] = []  # the names met so far: a range within one of its own name counts once
    parts = []
    while len(at):
        name = codes[at]
        fresh = np.ones(len(at), dtype=bool)
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
