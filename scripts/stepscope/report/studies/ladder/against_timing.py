"""What the timing study measured for cells of the ladder, in words: beside the gains, in a sentence, below a table."""

from stepscope.report.data.ladder import Ladder, time, times
from stepscope.report.data.ladder_again import CLOSE, apart
from stepscope.report.kit import formatting

MOST = 6  # ladders in a sentence


def from_elsewhere(one: Ladder, start: dict, top: dict, prefix: str) -> str:
    """The gain over the timing study's time of the first rung, where that is another."""
    phase, other = one.again.get(start["cell"], (None, None))
    if phase != prefix or apart(time(start, prefix), other) <= 1 + CLOSE:
        return ""
    return f", or {times(other / time(top, prefix))} from the timing study's {formatting.significant(other)} ms"


def sentence(found: list[Ladder]) -> str:
    """Rungs whose time is another than in the timing study."""
    parts, counts = [], [0, 0]
    for one in found:
        pairs = [(one.at(cell)["name"], time(one.at(cell), phase), other)
                 for cell, (phase, other) in one.again.items()]  # fmt: skip
        others = [pair for pair in pairs if apart(*pair[1:]) > 1 + CLOSE]
        told = [f"{name}: {' instead of '.join(map(formatting.significant, both))} ms" for name, *both in others]
        parts += [f"{one.place} ({'; '.join(told)})"] if told else []
        counts = [counts[0] + len(others), counts[1] + len(pairs)]
    if not parts:
        return ""
    rungs = f"Of {counts[1]:,} rungs that the timing study measured too, {counts[0]:,} differ"
    rungs = "The one rung that the timing study measured too differs" if counts[1] == 1 else rungs
    return (
        f"{rungs.replace(', 1 differ', ', 1 differs')} in time by more than {formatting.percent(CLOSE, 1)}: "
        f"{formatting.listing(parts, MOST, '; ')}. Gains of noisy rungs, and over them, count as faster or slower only "
        "where they are larger."
    )


def note(ladder: Ladder) -> list[str]:
    """What the timing study measured for cells of this ladder."""
    parts = []
    for cell, (phase, other) in ladder.again.items():
        row = ladder.at(cell)
        of = " of forward+backward" if phase == "forward_backward" else ""
        parts.append(f"{row['name']}, {formatting.significant(other)} ms{of} (here {times(time(row, phase) / other)})")
    return [f"The timing study's runs of the same cells: {formatting.listing(parts, 8, '; ')}."] if parts else []
