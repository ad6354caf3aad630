"""The captions of the timing study's figures."""

import pandas as pd

from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.captions import diamonds, fixed_parameters, hollow


def pictures(grid: pd.DataFrame) -> dict[str, Picture]:
    end, doubtful = fixed_parameters(grid), hollow(grid)
    beside = {"timing_by_size": " ".join(filter(None, [doubtful, diamonds(grid)])), "timing_by_context": doubtful}
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
            "Steps in the order in which they ran, a line a process, the warm-up shaded. What comes after it is "
            "measured and should be level; a slope means that more warm-up is needed. A selection of the cells that "
            "finished.",
            "Line charts of the time in ms of each step of selected cells, the warm-up steps first.",
        ),
        "timing_distribution": (
            "The samples of the cells that scatter most, as difference from the cell's median, of all its processes. "
            "The bar is the median's 95 % interval, where several processes measured it; the cells are sorted by the "
            "interquartile range within a process.",
            "Strip charts of measured samples as percentage differences from the median, for the cells that scatter "
            "most.",
        ),
    }
    return {
        name: Picture(name, " ".join(filter(None, [caption, beside.get(name), end])), alternative)
        for name, (caption, alternative) in words.items()
    }
