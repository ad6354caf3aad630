"""The timing study's part of the report."""

import pandas as pd

from stepscope.report.data.repeats import repeats_table, spreads
from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.formatting import listing
from stepscope.report.provenance import commands_table
from stepscope.report.studies.timing import findings as timing_findings
from stepscope.report.studies.timing.tables import (
    ceiling_of,
    first_steps_table,
    groups,
    machine_state_table,
    rates_table,
    times_table,
)
from stepscope.report.tables import Tables, machine_labels, main_grid, ordered, with_order


def findings(tables: Tables) -> list[str]:
    """Sentences for the summary."""
    return timing_findings.findings(with_order(tables["timing"]), tables["ceilings"])


def context(tables: Tables) -> dict:
    """What report/sections/timing.md.j2 is filled with."""
    timing = with_order(tables["timing"])
    parts = groups(timing)
    rates = [
        rates_table(hardware, precision, part, timing, ceiling_of(tables["ceilings"], hardware, precision))
        for hardware, precision, part in parts
    ]
    return {
        "pictures": _pictures(main_grid(tables["timing"])),
        "times": [times_table(hardware, precision, part, timing) for hardware, precision, part in parts],
        "rates": [table for table in rates if table],
        "repeats": repeats_table(spreads(timing)),
        "first_steps": first_steps_table(timing),
        "state": machine_state_table(timing),
        "commands_of_cells": commands_table(timing, "timing"),
    }


def fixed(grid: pd.DataFrame) -> str:
    """The fixed parameters of the figures: hardware, batch, vocabulary, options."""
    if grid.empty:
        return ""
    parts = [listing(machine_labels(grid["hardware"]), 3)]
    for name, words in (("batch", "batch"), ("vocab_size", "vocabulary")):
        values = ordered(grid[name]) if name in grid else []
        parts += [f"{words} {', '.join(f'{value:,.0f}' for value in values)}"] if values else []
    parts += [value for value in ordered(grid["options"]) if value]
    return "; ".join(parts) + "."


def _pictures(grid: pd.DataFrame) -> dict[str, Picture]:
    end = fixed(grid)
    words = {
        "timing_by_size": (
            "Time grows with the model size. A line a precision, median and its 95 % interval; a hollow cross at the "
            "top edge marks a size that ran out of memory. Where a line is flat, launching kernels, not arithmetic, "
            "may set the time.",
            "Line charts of the median time in ms over the parameter count, a column of panels for each context, "
            "a row for each phase, a line for each precision.",
        ),
        "timing_by_context": (
            "Time grows with the context. A line a precision, median and its 95 % interval; a hollow cross marks a "
            "context that ran out of memory. Both axes are logarithmic: a slope of one is growth in proportion.",
            "Line charts of the median time in ms over the context length, a column of panels for each size, a row "
            "for each phase, a line for each precision.",
        ),
        "timing_phases": (
            "How a step divides into forward, backward and optimizer. The bars are shares; the numbers in them and "
            "their sum beside them are medians in ms, of steps that synchronise after each phase.",
            "Stacked bars of the shares of forward, backward and optimizer in a step, for each size, by context and "
            "precision.",
        ),
        "timing_samples": (
            "Steps in the order in which they ran, the warm-up shaded. What comes after it is measured "
            "and should be level; a slope means that more warm-up is needed. A selection of the cells that finished.",
            "Line charts of the time in ms of each step of selected cells, the warm-up steps first.",
        ),
        "timing_distribution": (
            "The samples of the noisiest cells, as difference from their median. The bar is the median's 95 % "
            "interval; the cells are sorted by its width.",
            "Strip charts of measured samples as percentage differences from the median, for the noisiest cells.",
        ),
    }
    return {
        name: Picture(name, f"{caption} {end}".strip(), alternative) for name, (caption, alternative) in words.items()
    }
