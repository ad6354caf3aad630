"""What each phase launched: totals, kernels by name, categories. Seconds and counts are those of a
step."""

import math

import numpy as np
import pandas as pd

from . import kernel_names
from .attribution import Attribution
from .backward_modules import backward_operations
from .events import SECOND
from .kernel_categories import CATEGORIES
from .nesting import climb

_OF_GPU = ["gpu_time", "memory_time", "kernels", "memory_operations", "gpu_each"]
_MODULES = ["layer_modules", "remainder_modules"]
ALL = "all"  # the whole capture, what lies outside every phase included


def selections(found: Attribution) -> dict[str, np.ndarray]:
    """Each phase's operations as a mask, after those of the whole capture."""
    of_phases = {phase: at >= 0 for phase, at in found.occurrence.items()}
    return {ALL: np.ones(len(found.trace.operations), dtype=bool), **of_phases}


def phases(found: Attribution) -> pd.DataFrame:
    """A row a phase, `count` of its ranges in the trace.

    Host time is that of its ranges, exclusive without the phases inside it; GPU time that of all
    operations launched in it. Host time of several processes and GPU time of several streams are
    added up. `host_each` and `gpu_each` are of one occurrence: phases need not occur once a step.
    Without any operation of a GPU its time is unknown.
    """
    durations, inside = found.durations, inner_phase_time(found)
    rows = []
    for name in found.phases:
        own = found.occurrences(name).index
        mask = found.occurrence[name] >= 0
        moves = mask & found.moves_memory
        row = {
            "phase": name,
            "count": len(own),
            "host_time": found.lengths[own].sum() / SECOND,
            "host_exclusive": (found.lengths[own] - inside[own]).sum() / SECOND,
            "gpu_time": durations[mask].sum() / SECOND,
            "memory_time": durations[moves].sum() / SECOND,
            "kernels": (mask & found.is_kernel).sum(),
            "memory_operations": moves.sum(),
        }
        rows.append(row)
    table = pd.DataFrame(rows)
    if not rows:
        return table
    each = table[["host_time", "gpu_time"]].div(table["count"], axis=0)
    table[table.columns[2:]] /= found.steps
    table[["host_each", "gpu_each"]] = each
    if not len(durations):
        table[_OF_GPU] = math.nan
    return table


def inner_phase_time(found: Attribution) -> np.ndarray:
    """Nanoseconds of each range that phases inside it take, on its own thread and without what is
    inside those."""
    is_phase = found.is_phase[found.codes]
    own = np.flatnonzero(is_phase)
    around = climb(found.parent[own], found.parent, ~is_phase)
    inner = around >= 0
    return np.bincount(around[inner], found.lengths[own[inner]], len(is_phase)).astype(np.int64)


def kernels(found: Attribution, layers: int | None) -> pd.DataFrame:
    """A row for each kernel, copy and set of memory of a phase, the largest GPU time first.

    layers: blocks of the model; calls are then split into `layers * per_layer` and a remainder, and
    the modules that launched both are named. Of a launch: median, min, max, std.
    """
    every = pd.DataFrame(
        {
            "name": found.trace.operations["name"],
            "ns": found.durations,
            "bytes": found.trace.operations["bytes"],
            "module": module_codes(found),
            "step": found.occurrence_in(found.step_phase),
        }
    )
    described = _described(found, every["name"].unique())
    parts = {}
    for phase, mask in selections(found).items():
        own = every[mask & (found.is_kernel | found.moves_memory)]
        if own.empty:
            continue
        # a phase does not count as a module
        is_phase = own["module"] == (found.trace.names.index(phase) if phase != ALL else -1)
        own = own.assign(module=own["module"].mask(is_phase, -1))
        ns = own.groupby("name")["ns"].agg(["size", "sum", "median", "min", "max", "std"])
        ns = ns.sort_values("sum", ascending=False, kind="stable")
        total = found.durations[mask].sum()
        # Known of copies and fills by the driver alone: else it is negative.
        moved = own.groupby("name")["bytes"].sum()
        part = described.loc[ns.index].assign(
            calls=ns["size"] / found.steps,
            time=found.a_step(ns["sum"]),
            share=ns["sum"] / total if total else np.nan,
            bytes=moved.where(moved >= 0) / found.steps,
        )
        part = part.join(ns[["median", "min", "max", "std"]] / SECOND)
        parts[phase] = part.join(composition(found, own, layers))
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts, names=["phase", None]).reset_index("phase")
    return table.fillna(dict.fromkeys(_MODULES, "")).reset_index(drop=True)


def _described(found: Attribution, codes: np.ndarray) -> pd.DataFrame:
    """What the names of kernels say, by their codes."""
    full = found.named(codes)
    told = pd.DataFrame([kernel_names.describe(name) for name in full], index=codes)
    told = told.rename(columns={"short": "name", "unit": "arithmetic"}).assign(full_name=full)
    first = ["name", "category", "tile", "arithmetic", "full_name"]
    return told.reindex(columns=first)


def composition(found: Attribution, own: pd.DataFrame, layers: int | None) -> pd.DataFrame:
    """How a kernel's instances in a step come about: `layers` × `per_layer` and a remainder, and
    the modules behind both, by the kernel's code; without `layers`, or where steps differ, nothing.

    own: columns `name`, `module` (codes) and `step`, a row an instance. What ran outside every step
    (-1) is not alike in each. Of a module that is not in every layer all instances are of the
    remainder; of the others, and of those without a module, each layer has the same whole number.
    """
    if not layers:
        return pd.DataFrame(columns=["layers", "per_layer", *_MODULES])
    each = own.groupby(["name", "module", "step"]).size()
    alike = each.groupby(level=["name", "module"]).agg(["min", "max", "size"]).reset_index()
    is_steady = (alike["min"] == alike["max"]) & (alike["size"] == found.steps)
    differ = {*alike["name"][~is_steady], *own["name"][own["step"] < 0]}
    alike = alike[~alike["name"].isin(differ)]
    in_each = ~alike["module"].isin(once_a_step(found, layers))
    repeated = (alike["min"] // layers).where(in_each, 0)
    rest = alike["min"] - layers * repeated
    alike = alike.assign(module=found.named(alike["module"]))
    counted = [_counted(alike.assign(count=count)) for count in (repeated, rest)]
    per_layer = repeated.groupby(alike["name"]).sum()
    texts = dict(zip(_MODULES, counted, strict=True))
    return pd.DataFrame({"layers": layers, "per_layer": per_layer} | texts)


def once_a_step(found: Attribution, layers: int) -> set[int]:
    """Name codes of the ranges that do not stand in every layer: a step does not open a multiple of
    `layers` of them.

    An LM head that launches a kernel as often as there are layers is not in each of them.
    """
    codes, count = np.unique(found.codes, return_counts=True)
    return set(codes[count % (found.steps * layers) != 0].tolist())


def _counted(alike: pd.DataFrame) -> pd.Series:
    """The modules that launch a kernel and how often, by the kernel's code; most of all first."""
    own = alike[(alike["count"] > 0) & (alike["module"] != "")]
    own = own.sort_values(["count", "module"], ascending=[False, True])
    texts = own["count"].astype("str") + " " + own["module"].astype("str")
    return texts.groupby(own["name"]).agg(", ".join)


def module_codes(found: Attribution) -> np.ndarray:
    """For each operation the name code of its module, -1 without one.

    That is the innermost range of its thread that is neither an operator nor a phase, but for a
    phase inside another one (the loss in the forward pass); else, in the backward pass, the module
    whose forward operator made the backward function, if the trace says so.
    """
    codes = found.codes
    at = climb(found.innermost, found.parent, found.operator[codes])
    named = (at >= 0) & ~np.append(_outermost_phases(found), False)[at]
    return np.where(named, np.append(codes, -1)[at], backward_operations(found)[1])


def _outermost_phases(found: Attribution) -> np.ndarray:
    """For each range whether it is a phase that lies in no other one, the step aside."""
    codes = found.codes
    phase = found.is_phase[codes]
    step = codes == (found.trace.names.index(found.step_phase) if found.step_phase else -1)
    around = climb(found.parent, found.parent, ~phase | step)
    return phase & (step | (around < 0))


def categories(found: Attribution) -> pd.DataFrame:
    """A row for each category of a phase, in the order of CATEGORIES; copies and fills of memory
    included."""
    every = pd.DataFrame({"category": found.category, "ns": found.durations})
    parts = {
        phase: every[mask].groupby("category")["ns"].agg(calls="size", time="sum")
        for phase, mask in selections(found).items()
    }
    table = pd.concat(parts, names=["phase"]).reset_index()
    table["category"] = np.array(CATEGORIES)[table["category"]]
    table["share"] = table["time"] / table.groupby("phase")["time"].transform("sum")
    table["calls"] /= found.steps
    table["time"] = found.a_step(table["time"])
    return table
