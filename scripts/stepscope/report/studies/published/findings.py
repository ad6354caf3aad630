"""What the published figures come to as a whole."""

from collections.abc import Sequence

from stepscope.report.data.published import BETTER, EXPLAINED, NOT_COMPARABLE, WORSE, Beside
from stepscope.report.kit.finding import Finding, Number, key_of
from stepscope.report.kit.formatting import count


def cells_of(found: Sequence[Beside]) -> tuple[str, ...]:
    """Our cells behind them, each once."""
    return tuple(dict.fromkeys(cell for each in found for cell in each.partner.cells))


def overall(found: Sequence[Beside], hardware: str) -> Finding | None:
    """How many published figures meet ours, how many of them compare, and what the hardware explains of the times."""
    if not found:
        return None
    compared = [each for each in found if each.verdict != NOT_COMPARABLE]
    times = [each for each in compared if each.has_time and each.ratio is not None]
    numbers = {
        "met": Number(len(found), cells_of(found), count),
        "compared": Number(len(compared), cells_of(compared), count),
    }
    answer = "{met} published figures are of cells that were measured here too; {compared} of them can be compared."
    cause = ""
    if times:
        numbers["times"] = Number(len(times), cells_of(times), count)
        for word in (EXPLAINED, BETTER, WORSE):
            own = [each for each in times if each.verdict == word]
            numbers[key_of(word)] = Number(len(own), cells_of(own), count)
        cause = (
            f"Of {{times}} times and rates {{{key_of(EXPLAINED)}}} lie where the two GPUs' rates put them; "
            f"{BETTER}: {{{key_of(BETTER)}}}, {WORSE}: {{{key_of(WORSE)}}}."
        )
    return Finding("do published figures agree with ours", answer, numbers, hardware, cause)
