"""What profiles and snapshots of two runs say beside each other: kernels that came, went, grew; what fills more.

One trace or snapshot of each says nothing of how much two of the same program differ, so that there is no verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from stepscope.report.runs.judging import Results
from stepscope.report.runs.series import point_of
from stepscope.trace import comparison

LEAST_SHARE = 0.01  # of a step's GPU time: a kernel that changed by less is not told
LEAST_BYTES = 2 * 2**20  # a step of PyTorch's allocator: memory that changed by less is not told
# What the tables have to have.
_KERNELS = ("cell", "phase", "name", "full_name", "category", "total_ms", "instances", "instances_per_step")
_PHASES = ("cell", "phase", "gpu_ms_per_step", "kernels_per_step")
_PEAK = ("cell", "category", "bytes")


@dataclass(frozen=True)
class Kernel:
    """A kernel of a profiled cell that changed; milliseconds a step, None where it did not run."""

    cell: str
    name: str
    full_name: str
    category: str
    change: str  # came, went, grew or shrank
    before_ms: float | None
    after_ms: float | None


@dataclass(frozen=True)
class Filling:
    """A category of memory at the peak of a cell that changed; bytes."""

    cell: str
    category: str
    before: float
    after: float


def kernels(before: Results, after: Results, common: Sequence[tuple[str, str]]) -> list[Kernel] | None:
    """The kernels that changed by at least LEAST_SHARE of a step's GPU time, the largest change first; None where
    not both have profiles of a common cell."""
    found, has_both = [], False
    for old, new in common:
        own = [_profile(before, old), _profile(after, new)]
        if any(each["kernels"].empty for each in own):
            continue
        has_both = True
        full = {row["name"]: row["full_name"] for side in own for row in side["kernels"].to_dict("records")}
        table = comparison.compared(*own)["compared_kernels"]
        least = LEAST_SHARE * table["before_ms_per_step"].sum()
        changed = table[(table["change"] != "same") & (table["difference_ms_per_step"].abs() >= least)]
        found += [_kernel(new, row, full) for row in changed.to_dict("records")]
    found.sort(key=lambda each: -abs((each.after_ms or 0) - (each.before_ms or 0)))
    return found if has_both else None


def _profile(results: Results, cell: str) -> dict[str, pd.DataFrame]:
    """A cell's kernels and phases, as two traces are compared by."""
    kernels = _of(results, "profile_kernels", _KERNELS, cell).drop_duplicates(["phase", "full_name"])
    return {"kernels": kernels, "phases": _of(results, "profile_phases", _PHASES, cell).drop_duplicates("phase")}


def _kernel(cell: str, row: dict, full: dict[str, str]) -> Kernel:
    before, after = row["before_ms_per_step"], row["after_ms_per_step"]
    times = None if row["change"] == "came" else before, None if row["change"] == "went" else after
    name = str(row["name"])
    return Kernel(point_of(cell), name, str(full.get(row["name"], name)), str(row["category"]), row["change"], *times)


def fillings(before: Results, after: Results, common: Sequence[tuple[str, str]]) -> list[Filling] | None:
    """The categories that fill more or less of the memory at the peak, the largest difference first; None where not
    both have snapshots of a common cell."""
    found, has_both = [], False
    for old, new in common:
        peaks = _of(before, "memory_peak", _PEAK, old), _of(after, "memory_peak", _PEAK, new)
        if any(each.empty for each in peaks):
            continue
        has_both = True
        sizes = [each.groupby("category")["bytes"].sum() for each in peaks]
        for category in dict.fromkeys([*sizes[0].index, *sizes[1].index]):
            own = [float(size.get(category, 0.0)) for size in sizes]
            if abs(own[1] - own[0]) >= LEAST_BYTES:
                found.append(Filling(point_of(new), str(category), *own))
    found.sort(key=lambda each: -abs(each.after - each.before))
    return found if has_both else None


def _of(results: Results, name: str, columns: tuple[str, ...], cell: str) -> pd.DataFrame:
    """A cell's rows of a table, those that have a value in each of these columns; none of another table's columns."""
    table = results.tables.get(name, pd.DataFrame())
    if not set(columns) <= set(table.columns):
        return pd.DataFrame(columns=list(columns))
    return table[table["cell"] == cell].dropna(subset=list(columns))
