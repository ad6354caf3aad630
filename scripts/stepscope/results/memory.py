"""What the closed form says of memory, beside what snapshots recorded."""

import functools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pandas import DataFrame, Series

from stepscope.axes import modes_up_to
from stepscope.formulas import footprint_peak
from stepscope.formulas.footprint import Setup, group
from stepscope.formulas.footprint_peak import MODES
from stepscope.formulas.options import DTYPE_BYTES, TERMS
from stepscope.results.cells import MeasuredCell, mapped, of_study, places
from stepscope.results.tables import where

_peak = functools.cache(footprint_peak.peak)


def workspaces(cells: list[MeasuredCell], named: DataFrame) -> Series:
    """Bytes of libraries' own buffers by machine and mode: the most that a snapshot of a size
    recorded. named: memory_named, by analyses.read()."""
    modes = places([cell for cell in cells if cell.shape])["mode"]
    held = where(named, category="workspace").join(modes, on="cell")
    return held.groupby(["machine", "mode"])["bytes"].max()


def _workspace(cell: MeasuredCell, mode: str, known: Series) -> int:
    """Bytes that libraries hold in a mode on the cell's machine; 0 where no snapshot tells."""
    return known.get((cell.place["machine"], mode), 0)


def setup_of(cell: MeasuredCell, spec: dict) -> Setup | None:
    """What the closed form needs of a spec, the cell's or a variant's; None without a shape, or for
    options of which it knows nothing."""
    if cell.shape is None:
        return None
    setup = Setup.of(spec)
    return setup if setup.is_known else None


def values(cells: list[MeasuredCell], summary: DataFrame, known: Series) -> list[dict]:
    """Values, as records have them, with `cell`: predicted peaks of all cells, recorded peaks of
    snapshots. summary: memory_summary, by analyses.read(); known: by workspaces()."""
    asked = summary.groupby("cell")["peak"].max()
    found = []
    for cell in of_study(cells, "memory"):
        baselines = cell.summary.get("memory", {}).get("baselines") or {}
        sizes = {f"{name}_bytes": size for name, size in baselines.items()}
        sizes["peak_asked"] = asked.get(cell.name)
        place = {"cell": cell.name, "variant": "step", "mode": cell.place["mode"]}
        found += [place | {"quantity": name, "value": each} for name, each in sizes.items()]
    for cell in of_study(cells, "timing", "ladder", "memory"):
        found += _predicted_peaks(cell, known)
    return [value for value in found if value["value"]]


def _predicted_peaks(cell: MeasuredCell, known: Series) -> Iterator[dict]:
    """The closed form's peak of each variant and mode that the cell measures."""
    own = cell.place["mode"]
    modes = modes_up_to(own) if cell.place["study"] == "timing" else [own]
    for variant in cell.spec.get("variants", [{"name": "step"}]):
        spec = cell.spec | variant
        setup = setup_of(cell, spec)
        # A compiler keeps what it likes: it has no closed form.
        if setup is None or spec.get("compile", "none") != "none":
            continue
        place = {"cell": cell.name, "variant": variant["name"], "quantity": "peak_predicted"}
        for mode in modes:
            every = spec.get("checkpoint", 0) if "backward" in MODES[mode] else 0
            moment = _peak(replace(setup, checkpoint=every), mode)
            yield place | {"mode": mode, "value": moment.bytes + _workspace(cell, mode, known)}


def peak(rows: DataFrame, cells: list[MeasuredCell], known: Series) -> DataFrame:
    """memory_peak with what the closed form predicts of each category. known: by workspaces()."""
    predicted = mapped(rows, cells, lambda cell: _predicted(cell, known))
    pairs = zip(predicted, rows["category"], strict=True)
    return rows.assign(predicted=[of_cell.get(category) for of_cell, category in pairs])


def _predicted(cell: MeasuredCell, known: Series) -> dict[str, int]:
    """Bytes of each category at the peak in closed form; of none for a model of one's own, a
    compiler or checkpoints."""
    setup, mode = setup_of(cell, cell.spec), cell.place["mode"]
    if setup is None or {"compile", "checkpoint"} & set(cell.spec):
        return {}
    moment = _peak(setup, mode, _workspace(cell, mode, known))
    found: Counter[str] = Counter()
    for each in moment.contributions:
        found[each.category] += each.bytes
    return found


def with_formulas(rows: DataFrame, cells: list[MeasuredCell]) -> DataFrame:
    """memory_largest or memory_saved with the formula of one tensor's bytes, where one is found."""
    tensors = rows.assign(bytes=rows["bytes"] // rows.get("tensors", 1))
    columns = ("bytes", "shape", "dtype", "category", "module")
    found = mapped(tensors.fillna(dict.fromkeys(columns[1:], "")), cells, _formula, *columns)
    return rows.assign(formula=found)


def _formula(
    cell: MeasuredCell, size: float, shape: str, dtype: str, category: str, module: str
) -> str:
    """Of one tensor, "" without a closed form, and where its memory is more than its own."""
    setup, width = setup_of(cell, cell.spec), DTYPE_BYTES.get(dtype)
    if setup is None or not shape or width is None:
        return ""
    numbers = math.prod(map(int, shape.split("×")))
    dims = dims_of(setup, numbers, category, module) if size == width * numbers else ""
    return f"{dims} × {width} B" if dims else ""


def dims_of(setup: Setup, numbers: int, category: str, module: str) -> str:
    """What the elements of a tensor are made of, as "batch × heads × context × context"; "" where
    none of the closed form's has as many. Of several the module's own is meant, else one of the
    category. What no module makes is the optimizer's, and as large as a weight."""
    if not module and category != "buffers":
        category = "parameters"
    tensors = [each for name in TERMS["groups"] for each in group(setup, name)]
    alike = [each for each in tensors if each.numbers == numbers]
    alike.sort(key=lambda each: (each.module != module, each.category != category))
    return alike[0].dims if alike else ""
