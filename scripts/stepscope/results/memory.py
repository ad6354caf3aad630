"""What the closed form says of memory, beside what snapshots recorded."""

import functools
import math
from collections.abc import Iterator
from dataclasses import replace

from pandas import DataFrame

from stepscope.axes import modes_up_to, option
from stepscope.formulas import footprint_peak
from stepscope.formulas.footprint import Setup, group
from stepscope.formulas.footprint_peak import MODES, Peak
from stepscope.formulas.options import DTYPE_BYTES, TERMS

from .cells import MeasuredCell, mapped, of_study

_peak = functools.cache(footprint_peak.peak)


def setup_of(cell: MeasuredCell, spec: dict) -> Setup | None:
    """What the closed form needs of a spec, the cell's or a variant's; None without a shape, or for
    options of which it knows nothing."""
    if cell.shape is None:
        return None
    setup = Setup.of(spec)
    return setup if setup.is_known else None


def predicted(cell: MeasuredCell, spec: dict, mode: str) -> Peak | None:
    """The closed form's peak in a mode; None where it has none, and of a compiler, which keeps what
    it likes."""
    setup = setup_of(cell, spec)
    if setup is None or option(spec, "compile") != "none":
        return None
    is_backward = "backward" in MODES[mode]
    # Of two threads that multiply, the second is the backward pass's.
    libraries = TERMS["card"]["libraries"] // (1 if is_backward else 2)
    setup = replace(setup, checkpoint=option(spec, "checkpoint") if is_backward else 0)
    return _peak(setup, mode, libraries if spec.get("device") == "cuda" else 0)


def values(cells: list[MeasuredCell]) -> Iterator[dict]:
    """Values, as records have them, with `cell`: predicted peaks of all cells, recorded peaks of
    snapshots."""
    for cell in of_study(cells, "memory"):
        baselines = cell.summary.get("memory", {}).get("baselines") or {}
        sizes = {f"{name}_bytes": size for name, size in baselines.items()}
        if "memory_peak" in cell.analysis:
            sizes["peak_asked"] = cell.analysis["memory_peak"]["bytes"].sum()
        place = {"cell": cell.name, "variant": "step", "mode": cell.place["mode"]}
        for name, size in sizes.items():
            if size:
                yield place | {"quantity": name, "value": size}
    for cell in of_study(cells, "timing", "ladder", "memory"):
        yield from _predicted_peaks(cell)


def _predicted_peaks(cell: MeasuredCell) -> Iterator[dict]:
    """The closed form's peak of each variant and mode that the cell measures."""
    own = cell.place["mode"]
    modes = modes_up_to(own) if cell.place["study"] == "timing" else [own]
    for name, variant in (cell.variants or {"step": {}}).items():
        place = {"cell": cell.name, "variant": name, "quantity": "peak_predicted"}
        for mode in modes:
            moment = predicted(cell, cell.spec | variant, mode)
            if moment:
                yield place | {"mode": mode, "value": moment.bytes}


def peak(rows: DataFrame, cells: list[MeasuredCell]) -> DataFrame:
    """memory_peak with what the closed form predicts of each category."""
    return rows.assign(predicted=mapped(rows, cells, _of_category, "category"))


def _of_category(cell: MeasuredCell, category: str) -> int | None:
    """Bytes of a category at the peak in closed form; None where it has none."""
    moment = predicted(cell, cell.spec, cell.place["mode"])
    parts = moment.contributions if moment else ()
    return sum(each.bytes for each in parts if each.category == category) or None


def with_formulas(rows: DataFrame, cells: list[MeasuredCell]) -> DataFrame:
    """memory_largest or memory_saved with the formula of one tensor's bytes, where one is found."""
    tensors = rows.assign(bytes=rows["bytes"] // rows.get("tensors", 1))
    columns = ("bytes", "shape", "dtype", "category", "module")
    found = mapped(tensors, cells, _formula, *columns)
    return rows.assign(formula=found)


def _formula(
    cell: MeasuredCell, size: float, shape: str, dtype: str, category: str, module: str
) -> str:
    """Of one tensor, as "batch × heads × context × context × 4 B"; "" without a closed form, where
    none of its tensors has as many elements, and where the memory is more than its own."""
    setup, width = setup_of(cell, cell.spec), DTYPE_BYTES.get(dtype)
    if setup is None or not shape or width is None:
        return ""
    numbers = math.prod(map(int, shape.split("×")))
    if size != width * numbers:
        return ""
    # What no module makes is the optimizer's, and as large as a weight.
    kept = category if module or category == "buffers" else "parameters"
    tensors = [each for name in TERMS["groups"] for each in group(setup, name)]
    alike = [each for each in tensors if each.numbers == numbers]
    # Of several the module's own is meant, else one of the category.
    alike.sort(key=lambda each: (each.module != module, each.category != kept))
    return f"{alike[0].dims} × {width} B" if alike else ""
