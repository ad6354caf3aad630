"""What each phase launched: totals, kernels by name, categories. Milliseconds unless a column says otherwise."""

import numpy as np
import pandas as pd

from stepscope.trace import kernel_names
from stepscope.trace.attribution import Attribution
from stepscope.trace.categories import CATEGORIES
from stepscope.trace.events import KERNEL

ALL = "all"  # the whole capture, what lies outside every phase included
MS, US = 1e6, 1e3  # nanoseconds


def selections(found: Attribution) -> dict[str, np.ndarray]:
    """Each phase's operations as a mask, after those of the whole capture."""
    return {ALL: np.ones(len(found.trace.operations), dtype=bool), **found.members}


def phases(found: Attribution) -> pd.DataFrame:
    """A row a phase.

    Host time is that of its ranges, without that of the ranges directly inside for the exclusive one; GPU time is that
    of all operations launched in it, without those of phases inside it for the exclusive one.
    `kernels_by_thread_rule` are those that a tool counts which looks at the range's own thread only.
    """
    kernel = (found.trace.operations["kind"] == KERNEL).to_numpy()
    durations = found.durations
    inside = child_time(found)
    rows = []
    for position, name in enumerate(found.phases):
        own = found.occurrences(name)
        mask = found.members[name]
        alone = mask & (found.innermost_phase == position)
        host = int((own["end"] - own["start"]).sum())
        totals = {
            "host_ms": host / MS,
            "host_exclusive_ms": (host - int(inside[own.index].sum())) / MS,
            "gpu_ms": durations[mask].sum() / MS,
            "gpu_exclusive_ms": durations[alone].sum() / MS,
            "kernels": int((mask & kernel).sum()),
            "kernels_exclusive": int((alone & kernel).sum()),
            "kernels_by_thread_rule": int((found.own_thread[name] & kernel).sum()),
            "gpu_by_thread_rule_ms": durations[found.own_thread[name]].sum() / MS,
            "memory_operations": int((mask & ~kernel).sum()),
        }
        rows.append(
            {"phase": name, "count": len(own), "steps": found.steps}
            | {"cut_off": int(own["cut"].sum())}
            | {f"{key}_total": value for key, value in totals.items()}
            | {f"{key}_per_step": value / found.steps for key, value in totals.items()}
        )
    return pd.DataFrame(rows)


def child_time(found: Attribution) -> np.ndarray:
    """Nanoseconds of each range that ranges directly inside it take."""
    ranges, has_parent = found.trace.ranges, found.parent >= 0
    length = (ranges["end"] - ranges["start"]).to_numpy()
    return np.bincount(found.parent[has_parent], length[has_parent], len(ranges)).astype(np.int64)


def kernels(found: Attribution, layers: int | None) -> pd.DataFrame:
    """A row for each kernel of a phase, the largest GPU time first.

    layers: blocks of the model; `instances_per_step` is then split into `layers * per_layer + remainder`, and the
    ranges (`modules`) that launched them are named.
    """
    operations = found.trace.operations
    is_kernel = (operations["kind"] == KERNEL).to_numpy()
    durations, names = found.durations, operations["name"].to_numpy()
    module = _module_names(found)
    rows = []
    for phase, mask in selections(found).items():
        total = durations[mask].sum()
        own = pd.DataFrame({"name": names, "ns": durations, "module": module})[mask & is_kernel]
        for code, part in own.groupby("name"):
            full = found.trace.names[code]
            told = kernel_names.describe(full)
            ns = part["ns"]
            rows.append(
                {"phase": phase, "name": told.short, "category": told.category}
                | {"total_ms": ns.sum() / MS, "share_of_phase_gpu_time": ns.sum() / total if total else None}
                | {"instances": len(part), "instances_per_step": len(part) / found.steps}
                | composition(part["module"], found.steps, layers)
                | {"mean_us": ns.mean() / US, "median_us": ns.median() / US, "min_us": ns.min() / US}
                | {"max_us": ns.max() / US, "std_us": ns.std() / US if len(part) > 1 else None}
                | {"tile": told.tile, "data_type": told.data_type, "unit": told.unit, "full_name": full}
            )
    order = {phase: at for at, phase in enumerate(selections(found))}
    table = pd.DataFrame(rows)
    if table.empty:
        return table
    table["_order"] = table["phase"].map(order)
    return table.sort_values(["_order", "total_ms"], ascending=[True, False], kind="stable").drop(columns="_order")


def composition(modules: pd.Series, steps: int, layers: int | None) -> dict:
    """How a kernel's instances in a step come about: layers x per_layer + remainder, and the modules behind both.

    A module that runs it at least `layers` times a step is in every layer; what is left over is the remainder. All
    empty without `layers`, or if the steps differ.
    """
    counts = modules.value_counts(sort=False)
    nothing = {"layers": None, "per_layer": None, "remainder": None, "layer_modules": "", "remainder_modules": ""}
    if layers is None or (counts % steps != 0).any():
        return nothing
    each = (counts // steps).sort_index()
    repeated, rest = each // layers, each % layers
    return {
        "layers": layers,
        "per_layer": int(repeated.sum()),
        "remainder": int(rest.sum()),
        "layer_modules": _counted(repeated),
        "remainder_modules": _counted(rest),
    }


def _counted(counts: pd.Series) -> str:
    named = [(name, count) for name, count in counts.items() if count and name]
    return ", ".join(f"{count} {name}" for name, count in sorted(named, key=lambda pair: (-pair[1], pair[0])))


def _module_names(found: Attribution) -> np.ndarray:
    """For each operation the name of its innermost range that is no phase and no operator; empty without one."""
    names, ranges = found.trace.names, found.trace.ranges
    at = module_ranges(found)
    codes = ranges["name"].to_numpy()
    label = np.array([*names, ""], dtype=object)
    return label[np.where(at >= 0, codes[at], len(names))] if len(codes) else np.full(len(at), "", dtype=object)


def module_ranges(found: Attribution) -> np.ndarray:
    """For each operation its innermost range that is a module: neither a phase nor an operator; -1 without one."""
    names, codes = found.trace.names, found.trace.ranges["name"].to_numpy()
    excluded = np.array([is_operator(name) or name in found.phases for name in names] + [True], dtype=bool)
    at = found.innermost.copy()
    while True:
        wrong = at >= 0
        wrong[wrong] = excluded[codes[at[wrong]]]
        if not wrong.any():
            return at
        at[wrong] = found.parent[at[wrong]]


def is_operator(name: str) -> bool:
    """Whether a range's name is one of autograd's own, such as aten::mm or MmBackward0, and no module's."""
    return "::" in name or name.rstrip("0123456789").endswith("Backward")


def categories(found: Attribution) -> pd.DataFrame:
    """A row for each category of a phase, in the order of CATEGORIES; copies and fills of memory included."""
    names = found.trace.operations["name"].to_numpy()
    category_of_code = {code: kernel_names.describe(found.trace.names[code]).category for code in np.unique(names)}
    category = np.array([category_of_code[code] for code in names], dtype=object)
    durations = found.durations
    rows = []
    for phase, mask in selections(found).items():
        total = durations[mask].sum()
        own = pd.DataFrame({"category": category, "ns": durations})[mask].groupby("category")["ns"].agg(["sum", "size"])
        for name in CATEGORIES:
            if name in own.index:
                ns, count = own.loc[name]
                rows.append(
                    {"phase": phase, "category": name, "total_ms": ns / MS, "ms_per_step": ns / MS / found.steps}
                    | {"share_of_phase_gpu_time": ns / total if total else None}
                    | {"instances": int(count), "instances_per_step": count / found.steps}
                )
    return pd.DataFrame(rows)
