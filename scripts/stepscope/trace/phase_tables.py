"""What each phase launched: totals, kernels by name, categories. Seconds and counts are those of a
step."""

import math
from collections.abc import Collection

import numpy as np
import pandas as pd

from stepscope.trace import kernel_names
from stepscope.trace.attribution import Attribution
from stepscope.trace.backward_modules import backward_operations
from stepscope.trace.events import SECOND
from stepscope.trace.kernel_categories import CATEGORIES
from stepscope.trace.nesting import climb

ALL = "all"  # the whole capture, what lies outside every phase included


def selections(found: Attribution) -> dict[str, np.ndarray]:
    """Each phase's operations as a mask, after those of the whole capture."""
    return {ALL: np.ones(len(found.trace.operations), dtype=bool), **found.members}


def phases(found: Attribution) -> pd.DataFrame:
    """A row a phase, `count` of its ranges in the trace.

    Host time is that of its ranges, exclusive without the phases inside it; GPU time that of all
    operations launched in it. Host time of several processes and GPU time of several streams are
    added up. `host_each` and `gpu_each` are of one occurrence: phases need not occur once a step.
    Without any operation of a GPU its time is unknown.
    """
    memory, durations, inside = found.moves_memory, found.durations, inner_phase_time(found)
    is_known = len(durations) > 0
    rows = []
    for name in found.phases:
        own = found.occurrences(name)
        mask = found.members[name]
        host = int(found.lengths[own.index].sum())
        totals = {
            "host_time": host / SECOND,
            "host_exclusive": (host - int(inside[own.index].sum())) / SECOND,
            "gpu_time": durations[mask].sum() / SECOND,
            "memory_time": durations[mask & memory].sum() / SECOND,
            "kernels": int((mask & found.is_kernel).sum()),
            "memory_operations": int((mask & memory).sum()),
        }
        of_gpu = totals.keys() - {"host_time", "host_exclusive"}
        if not is_known:
            totals |= dict.fromkeys(of_gpu, math.nan)
        each = {
            "host_each": totals["host_time"] / len(own),
            "gpu_each": totals["gpu_time"] / len(own),
        }
        totals = {key: value / found.steps for key, value in totals.items()}
        rows.append({"phase": name, "count": len(own)} | totals | each)
    return pd.DataFrame(rows)


def inner_phase_time(found: Attribution) -> np.ndarray:
    """Nanoseconds of each range that phases inside it take, on its own thread and without what is
    inside those."""
    is_phase = found.is_phase[found.trace.ranges["name"].to_numpy()]
    own = np.flatnonzero(is_phase)
    around = climb(found.parent[own], found.parent, ~is_phase)
    inner = around >= 0
    return np.bincount(around[inner], found.lengths[own[inner]], len(is_phase)).astype(np.int64)


def kernels(found: Attribution, layers: int | None) -> pd.DataFrame:
    """A row for each kernel, copy and set of memory of a phase, the largest GPU time first.

    layers: blocks of the model; calls are then split into `layers * per_layer` and a remainder, and
    the modules that launched both are named. Of a launch: median, min, max, std.
    """
    names, durations = found.trace.operations["name"].to_numpy(), found.durations
    every = pd.DataFrame(
        {
            "name": names,
            "ns": durations,
            "module": module_codes(found),
        }
    )
    every["step"] = found.occurrence_in(found.step_phase)
    shown = found.is_kernel | found.moves_memory
    parts = []
    once = once_a_step(found, layers)
    for phase, mask in selections(found).items():
        own = every[mask & shown]
        if own.empty:
            continue
        code = found.trace.names.index(phase) if phase != ALL else -1
        own = own.assign(
            module=own["module"].where(own["module"] != code, -1)
        )  # a phase does not count as a module
        ns = own.groupby("name")["ns"].agg(["size", "sum", "median", "min", "max", "std"])
        ns = ns.sort_values("sum", ascending=False, kind="stable")
        counts = counts_per_step(own, found.steps) if layers else {}
        split = [
            composition(counts.get(code), layers, found.trace.names, once) for code in ns.index
        ]
        full = [found.trace.names[code] for code in ns.index]
        described = [kernel_names.describe(name) for name in full]
        total = durations[mask].sum()
        part: dict[str, object] = {"phase": phase, "name": [each.short for each in described]}
        part |= {"category": [each.category for each in described]}
        part |= {
            "calls": ns["size"].to_numpy() / found.steps,
            "time": ns["sum"].to_numpy() / SECOND / found.steps,
        }
        part |= {"share": ns["sum"].to_numpy() / total if total else np.nan}
        part |= {key: ns[key].to_numpy() / SECOND for key in ("median", "min", "max", "std")}
        part |= {key: [row[key] for row in split] for key in split[0]}
        part |= {
            "tile": [each.tile for each in described],
            "data_type": [each.data_type for each in described],
        }
        parts.append(
            pd.DataFrame(
                part | {"arithmetic": [each.unit for each in described], "full_name": full}
            )
        )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def counts_per_step(own: pd.DataFrame, steps: int) -> dict[int, dict[int, int]]:
    """Kernel's name code → module's code → instances a step, for the kernels that run alike in each
    step.

    own: columns `name`, `module`, `step`, a row an instance. What ran outside every step (-1) is
    not alike.
    """
    each = own.groupby(["name", "module", "step"]).size()
    alike = each.groupby(level=["name", "module"]).agg(["min", "max", "size"])
    steady = (alike["min"] == alike["max"]) & (alike["size"] == steps)
    outside = own["name"][own["step"] < 0].unique()
    unsteady = set(steady[~steady].index.get_level_values("name")) | set(outside)
    result: dict[int, dict[int, int]] = {}
    for (name, module), count in zip(alike.index.tolist(), alike["min"].tolist(), strict=True):
        if name not in unsteady:
            result.setdefault(name, {})[module] = int(count)
    return result


def once_a_step(found: Attribution, layers: int | None) -> set[int]:
    """Name codes of the ranges that do not stand in every layer: a step does not open a multiple of
    `layers` of them.

    An LM head that launches a kernel as often as there are layers is not in each of them.
    """
    codes, count = np.unique(found.trace.ranges["name"].to_numpy(), return_counts=True)
    return set(codes[count % (found.steps * layers) != 0].tolist()) if layers else set()


def composition(
    counts: dict[int, int] | None, layers: int | None, names: list[str], once: Collection[int] = ()
) -> dict:
    """How a kernel's instances in a step come about: layers × per_layer and a remainder, and the
    modules behind both.

    counts: module's name code (-1 for none) → instances a step. once: modules that are not in every
    layer; all their instances are of the remainder. Of the others, and of those without a module,
    each layer has the same whole number, and what is left over is of the remainder. All empty
    without `layers`, or if the steps differ.
    """
    if not layers or counts is None:
        return {
            "layers": None,
            "per_layer": None,
            "layer_modules": "",
            "remainder_modules": "",
        }
    repeated = {code: 0 if code in once else count // layers for code, count in counts.items()}
    rest = {code: count - layers * repeated[code] for code, count in counts.items()}
    return {
        "layers": layers,
        "per_layer": sum(repeated.values()),
        "layer_modules": _counted(repeated, names),
        "remainder_modules": _counted(rest, names),
    }


def _counted(counts: dict[int, int], names: list[str]) -> str:
    named = [(names[code], count) for code, count in counts.items() if count and code >= 0]
    return ", ".join(
        f"{count} {name}" for name, count in sorted(named, key=lambda pair: (-pair[1], pair[0]))
    )


def module_codes(found: Attribution) -> np.ndarray:
    """For each operation the name code of its module, -1 without one.

    That is the innermost range of its thread that is neither an operator nor a phase, but for a
    phase inside another one (the loss in the forward pass); else, in the backward pass, the module
    whose forward operator made the backward function, if the trace says so.
    """
    codes = found.trace.ranges["name"].to_numpy()
    at = climb(found.innermost, found.parent, found.operator[codes])
    named = (at >= 0) & ~np.append(_outermost_phases(found), False)[at]
    return np.where(named, np.append(codes, -1)[at], backward_operations(found)[1])


def _outermost_phases(found: Attribution) -> np.ndarray:
    """For each range whether it is a phase that lies in no other one, the step aside."""
    codes = found.trace.ranges["name"].to_numpy()
    phase = found.is_phase[codes]
    step = codes == (found.trace.names.index(found.step_phase) if found.step_phase else -1)
    around = climb(found.parent, found.parent, ~phase | step)
    return phase & (step | (around < 0))


def categories(found: Attribution) -> pd.DataFrame:
    """A row for each category of a phase, in the order of CATEGORIES; copies and fills of memory
    included."""
    rows = []
    for phase, mask in selections(found).items():
        total = found.durations[mask].sum()
        count = np.bincount(found.category[mask], minlength=len(CATEGORIES))
        ns = np.bincount(found.category[mask], found.durations[mask], len(CATEGORIES))
        rows += [
            {
                "phase": phase,
                "category": name,
                "calls": count[at] / found.steps,
            }
            | {"time": ns[at] / SECOND / found.steps, "share": ns[at] / total if total else None}
            for at, name in enumerate(CATEGORIES)
            if count[at]
        ]
    return pd.DataFrame(rows)
