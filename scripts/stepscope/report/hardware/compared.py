"""A cell of a table that compares a machine with the baseline."""

from stepscope.report import formatting
from stepscope.report.blocks import Cell
from stepscope.report.precision.mixed_tables import ratio_text as two_decimals

LOST = ("oom", "unsupported", "failed", "missing")


def ratio_text(ratio: float) -> str:
    """Two decimals, or three digits where they would be too few or too many."""
    return two_decimals(ratio) if 0.1 <= ratio < 100 else formatting.significant(ratio, 3 if ratio > 1 else 2)


def speed_cell(
    before: float | None, after: float | None, is_clear: bool, statuses, marks: tuple[str, ...] = ()
) -> Cell:
    """`1.43` over `28.5 → 19.9`, the ratio in brackets unless it is clear.

    Where one of both has no time, its badge and a dash in its place. statuses: of the baseline and of the machine.
    """
    below = " → ".join(formatting.significant(each) if each else "–" for each in (before, after))
    if before and after:
        text = ratio_text(before / after)
        return Cell(text if is_clear else f"({text})", below, before / after, marks)
    badges = tuple(dict.fromkeys(each for each in statuses if each in LOST))
    return Cell("" if badges else "–", below if before or after else "", badges=badges)
