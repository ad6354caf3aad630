"""What the tables of profiles get from elsewhere: the work of their parts in closed form, and what
the same phases take by the clock, with and without the profiler."""

from collections.abc import Callable, Mapping

import numpy as np
from pandas import DataFrame

from stepscope.axes import is_step, option
from stepscope.formulas import traffic
from stepscope.formulas.traffic import Work
from stepscope.model.formats import FORMATS

from . import models
from .cells import MeasuredCell, beside, mapped
from .tables import where

Known = Mapping[tuple[str, ...], Work]  # by what tells rows of a cell apart
NONE: Work = (np.nan, np.nan)
PLACE = ["machine", "size", "context", "batch", "precision", "options", "mode", "phase"]
ASIDE = r"(detail|start)=\S+ ?"  # options of a profile that are none of the step
BYTES = {"own": traffic.WRITTEN_OUT_BYTES, "fused": traffic.OPTIMIZER_BYTES}  # of an optimizer


def with_work(tables: Mapping[str, DataFrame], cells: list[MeasuredCell]) -> dict:
    """The tables of ranges, of kinds of kernels and of phases with `flop` and `bytes`, where the
    closed form knows them."""
    # torch.profiler knows no × in names.
    ranges = tables["modules"].replace({"module": {"attention x V": "attention × V"}})
    return {
        "modules": _worked(ranges, cells, _of_ranges, "kind", "module"),
        "categories": _worked(tables["categories"], cells, _of_kinds, "phase", "category"),
        "phases": _worked(tables["phases"], cells, _of_phases, "phase"),
    }


def _worked(
    rows: DataFrame,
    cells: list[MeasuredCell],
    known: Callable[[MeasuredCell], Known],
    *columns: str,
) -> DataFrame:
    found = mapped(rows, cells, lambda cell, *key: known(cell).get(key, NONE), *columns)
    return rows.assign(**DataFrame(list(found), rows.index, ["flop", "bytes"]))


def _of_ranges(cell: MeasuredCell) -> Known:
    """Of one that runs the ranges as they are written, and over all scores."""
    if cell.shape is None or cell.shape.window:
        return {}
    own = FORMATS[cell.spec["precision"]]
    if own.outside or option(cell.spec, "compile") != "none":
        return {}
    batch, context = cell.spec["batch"], cell.spec["context"]
    found = traffic.of_ranges(cell.shape, batch, context, own.is_autocast)
    # One sequence's Q and V are views, not copies; a loss in chunks holds the head's backward pass.
    unlike = {"attention scores", "attention × V"} if batch == 1 else set()
    if option(cell.spec, "loss") == "chunked":
        unlike.add("LM head")
    return {("module", name): work for name, work in found.items() if name not in unlike}


def _of_kinds(cell: MeasuredCell) -> Known:
    """Of a step that sees all keys, and computes nothing twice."""
    if cell.shape is None or cell.place["mode"] != "step":
        return {}
    if cell.shape.window or option(cell.spec, "checkpoint"):
        return {}
    precision = cell.spec["precision"]
    outside = FORMATS[precision].outside or precision
    numbers = FORMATS[precision].bytes, FORMATS[outside].bytes
    is_fused = option(cell.spec, "attention") != "naive"
    found = traffic.of_kinds(
        cell.shape, cell.spec["batch"], cell.spec["context"], numbers, is_fused
    )
    return {("step", kind): work for kind, work in found.items()}


def _of_phases(cell: MeasuredCell) -> Known:
    """Products of passes, and what the optimizer goes over."""
    modes = ("step", "forward", cell.place["mode"])
    both, forward, whole = (models.flop(cell, mode) for mode in modes)
    if is_step(cell.spec):  # its phases and its optimizer are its own
        return {("step",): (both, np.nan)}
    of_model = cell.shape.parameters if cell.shape else cell.own_model.get("trainable_parameters")
    trained = of_model or np.nan
    moved = BYTES.get(option(cell.spec, "optimizer"), np.nan)
    return {
        ("step",): (whole, np.nan),
        ("forward",): (forward, np.nan),
        ("inference",): (forward, np.nan),
        ("backward",): (both - forward, np.nan),
        ("optimizer",): (traffic.OPTIMIZER_OPERATIONS * trained, moved * trained),
    }


def by_the_clock(phases: DataFrame, series: DataFrame) -> DataFrame:
    """The phases with what the host's clock says of them in the same steps, and how many times as
    long that is as without the profiler."""
    times = where(series, quantity="time", variant="step")
    profiled = where(times, study="profile")
    profiled = profiled.assign(options=profiled["options"].str.replace(ASIDE, "", regex=True))
    plain = beside(profiled, where(times, study="timing"), PLACE, "median")
    profiled = profiled.assign(overhead=profiled["median"] / plain)
    own = {"clock": "mean", "clock_std": "std", "overhead": "overhead"}
    told = {
        name: beside(phases, profiled, ["cell", "phase"], column) for name, column in own.items()
    }
    return phases.assign(**told)
