"""The ladder's cells that the timing study measured too: what runs of the same cell differ by, at another time."""

import pandas as pd

from stepscope.report.kit import formatting
from stepscope.report.kit.order import NEUTRAL, column

CLOSE = 0.05  # times that differ by no more than this share are called the same
_PLACE = ("hardware", "size", "context", "batch", "precision")
_FREE = ("step", "forward_backward")  # phases that both studies measure alike, the first that both have


def elsewhere(row: dict, timing: pd.DataFrame) -> tuple[str, float] | None:
    """(phase, median over the timing study's runs of the ladder cell `row`, ms); None where it has none."""
    if timing.empty or not all(name in timing for name in (*_PLACE, "mode")):
        return None
    same = timing["mode"] == "step"
    for name in _PLACE:
        same &= timing[name] == row.get(name)
    for name, neutral in NEUTRAL.items():
        values = column(timing, name)
        same &= values.where(values.notna(), neutral).map(_plain) == _plain(row.get(name) or neutral)
    for phase in _FREE:
        own, medians = row.get(f"{phase}_median_ms"), column(timing[same], f"{phase}_median_ms").dropna()
        if formatting.known(own) and len(medians):
            return phase, float(medians.median())
    return None


def _plain(value: object) -> str:
    """`0` of 0, 0.0 and `0`."""
    return str(value).removesuffix(".0")


def apart(one: float, other: float) -> float:
    """The longer of two times over the shorter."""
    return max(one, other) / min(one, other)
