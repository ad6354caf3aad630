"""What the comparisons of a machine with the baseline share: a cell, what its badges mean, how a verdict is told."""

from collections.abc import Iterable

from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import BADGES, Cell
from stepscope.report.kit.compare import Comparison
from stepscope.report.studies.precision.tables_mixed import ratio_text as two_decimals

LOST = ("oom", "unsupported", "failed", "missing")
_MEANINGS = {"oom": "out of memory", "unsupported": "not possible on that machine"}


def ratio_text(ratio: float) -> str:
    """Two decimals, or three digits where they would be too few or too many."""
    return two_decimals(ratio) if 0.1 <= ratio < 100 else formatting.significant(ratio, 3 if ratio > 1 else 2)


def judged(speeds: Iterable[Comparison]) -> str:
    """How faster, slower and about equal are told, where it is not by the spread between repeated runs of both."""
    by_repeats = [speed.by_repeats for speed in speeds]
    if all(by_repeats):
        return ""
    rule = "only disjoint 95 % intervals count as a difference"
    if not any(by_repeats):
        return f" (no repeated runs of both: {rule})"
    return f" ({by_repeats.count(False):,} of these {len(by_repeats):,} without repeated runs of both: there {rule})"


def legend(rows: list[list[Cell]]) -> list[str]:
    """What the badges in these rows mean; these tables give no peak of what ran out of memory, and no reasons."""
    used = {key for row in rows for cell in row for key in cell.badges}
    meanings = [f"{text}: {_MEANINGS.get(key, meaning)}" for key, (text, meaning) in BADGES.items() if key in used]
    return ["; ".join(meanings) + "."] if meanings else []


def machines_of(found: list, labels: list[str]) -> list[str]:
    """Those of the machines that a study has; `found` are what it compares, each with `rows` by hardware label."""
    return [label for label in labels if found and label in found[0].rows]


def everyone(labels: list[str], present: list[str]) -> str:
    """`all machines`, or the names of those that a study has, where it lacks some."""
    return "all machines" if labels == present else formatting.listing(present)


def absent(labels: list[str], present: list[str], study: str) -> list[str]:
    """A sentence on the machines that a study has no cells of; none where it has all."""
    names = [label for label in labels if label not in present]
    return [f"The {study} study has no cells of {formatting.listing(names)}."] if names else []


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
