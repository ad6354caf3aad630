"""What a change brought on the ladder, and the sentence that sets it beside what was predicted."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stepscope.report.data.ladder import Ladder
from stepscope.report.data.step_parts import StepParts, work
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import FASTER, NOT_COMPARABLE, UNCLEAR, Comparison, interval_text
from stepscope.report.kit.finding import Number
from stepscope.report.kit.order import NEUTRAL


@dataclass(frozen=True)
class Change:
    """A rung that differs from the one before in one option, and its speed over that."""

    ladder: Ladder
    row: dict
    speed: Comparison

    @property
    def cells(self) -> tuple[str, str]:
        return self.row["compared_with"], self.row["cell"]

    @property
    def number(self) -> Number:
        """`× 1.30 [1.28, 1.33], faster` or, of a single process, `× 1.30`."""
        interval = interval_text(self.speed)
        text = " ".join(filter(None, [formatting.times(self.speed.ratio), interval]))
        word = f", {self.speed.verdict}" if self.speed.has_interval else ""
        return Number(self.speed.ratio, self.cells, lambda _: f"{text}{word}")

    def is_from(self, option: str, value: str) -> bool:
        """Whether the rung before had this value of an option."""
        before = self.ladder.at(self.row.get("compared_with")) or {}
        return str(before.get(option) or NEUTRAL[option]) == value

    def is_at(self, own: StepParts) -> bool:
        """Whether it was measured at a step's own place."""
        return (self.ladder.size, self.ladder.context, self.ladder.batch) == own.place

    @property
    def place(self) -> str:
        """Where it was measured: `medium at 512`."""
        return f"{self.ladder.size} at {self.ladder.context:,.0f}"


def change(
    found: Iterable[Ladder],
    own: StepParts,
    option: str,
    is_new: Callable[[str], bool],
    rank: Callable[[Change], int] = lambda _: 0,
) -> Change | None:
    """The change of changes() of the lowest rank, and of these on the ladder that is nearest to a step.

    Nearest: of the same size before others, then by parameters × context.
    """
    return min(
        changes(found, option, is_new), key=lambda each: (rank(each), *_distance(each.ladder, own)), default=None
    )


def changes(found: Iterable[Ladder], option: str, is_new: Callable[[str], bool]) -> list[Change]:
    """Of each ladder the rung that gives an option such a value for the first time.

    is_new: of the option's value; the rung that it is compared with must not have such a one. A rung that makes several
    changes at once does not count.
    """

    def value(row: dict) -> str:
        return str(row.get(option) or NEUTRAL[option])

    made = []
    for one in found:
        for row in one.climbed:
            before, speed = one.at(row.get("compared_with")), one.over_before.get(row["cell"])
            if before and speed and is_new(value(row)) and not is_new(value(before)) and not one.is_passed_over(row):
                made.append(Change(one, row, speed))
                break
    return made


def _distance(one: Ladder, own: StepParts) -> tuple[bool, float]:
    amounts = work(one.parameters, one.context)[0], own.work[0]
    return one.size != own.row["size"], abs(math.log(amounts[0] / amounts[1])) if all(amounts) else math.inf


def advice(
    own: StepParts, thing: str, bound: str, predicted: float | None, made: Change | None, where: str = "here"
) -> tuple[str, dict[str, Number]]:
    """(`Use compiled blocks: at most {predicted} here; measured (medium at 512): {gain}.`, its numbers).

    predicted: how many times as fast the step would be. bound: what is said instead of `predicted`, such as `at most`.
    where: a word for the step's place. A gain that was measured at another place is not the one that was predicted, and
    says so.
    """
    parts, numbers = [], {}
    if predicted:
        parts.append(f"{bound or 'predicted'} {{predicted}} {where}")
        numbers["predicted"] = Number(predicted, (own.row["cell"],), formatting.times)
    if made:
        parts.append("measured {gain}" if made.is_at(own) else f"measured ({made.place}): {{gain}}")
        numbers["gain"] = made.number
    told = f": {'; '.join(parts)}" if parts else ""
    return f"{urge(made.speed if made else None)} {thing}{told}.", numbers


def urge(found: Comparison | None) -> str:
    """How strongly to advise what was compared: `Use` what is faster, `Try` what is not known, else no gain."""
    if found is None or not found.has_interval or found.verdict in (UNCLEAR, NOT_COMPARABLE):
        return "Try"
    return "Use" if found.verdict == FASTER else "No gain from"
