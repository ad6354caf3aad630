"""What the captions of all studies share."""

import pandas as pd

from stepscope.report.kit.formatting import listing
from stepscope.report.kit.order import machine_labels, ordered


def diamonds(grid: pd.DataFrame) -> str:
    """What figures over the parameters say of models of one's own; empty without any."""
    is_own = "model" in grid and grid["model"].notna().any()
    return "A diamond is a model of one's own, which is no size of the same model." if is_own else ""


def hollow(grid: pd.DataFrame) -> str:
    """What figures over the timing study's medians say of those without an interval; empty without any."""
    flags = [grid[name] for name in grid if name.endswith("_unsteady")]
    are_any = any(flag.eq(True).any() for flag in flags)
    return "Hollow dots: processes that disagree by more than chance." if are_any else ""


def fixed_parameters(grid: pd.DataFrame) -> str:
    """The fixed parameters of the figures: hardware, batch, vocabulary, options."""
    if grid.empty:
        return ""
    parts = [listing(machine_labels(grid["hardware"]), 3)]
    for name, words in (("batch", "batch"), ("vocab_size", "vocabulary")):
        values = ordered(grid[name]) if name in grid else []
        words += " of sizes" * bool(name == "vocab_size" and grid[name].isna().any())  # an own model may have another
        parts += [f"{words} {', '.join(f'{value:,.0f}' for value in values)}"] if values else []
    parts += [value for value in ordered(grid["options"]) if value]
    return "; ".join(parts) + "."
