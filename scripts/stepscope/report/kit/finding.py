"""A finding: the answer to a question, with the numbers behind it. Its text is made from them once, on the page."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from stepscope.report.kit import formatting
from stepscope.report.kit.compare import (
    FASTER,
    NOT_COMPARABLE,
    SAME,
    SLOWER,
    UNCLEAR,
    Comparison,
    ratio_and_interval,
)

_WORDS = (FASTER, SAME, UNCLEAR, SLOWER, NOT_COMPARABLE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number of an answer: its value (or the values of a range), the cells it comes from, and how it is printed."""

    value: object
    cells: tuple[str, ...] = ()
    show: Callable[..., str] = formatting.significant

    def __str__(self) -> str:
        return self.show(self.value)


@dataclass(frozen=True, slots=True)
class Finding:
    """An answer with `{name}` wherever a number stands.

    hardware: the machine that it is about; empty where it is about none or several. cause: why it is so; advice: what
    to do about it.
    """

    question: str
    answer: str
    numbers: Mapping[str, Number] = field(default_factory=lambda: MappingProxyType({}))
    hardware: str = ""
    cause: str = ""
    advice: str = ""

    @property
    def text(self) -> str:
        """The sentences for a reader."""
        return " ".join(filter(None, [self.verdict, self.reasons]))

    @property
    def verdict(self) -> str:
        """The answer alone, for a reader."""
        return self._filled(self.answer)

    @property
    def reasons(self) -> str:
        """Cause and advice, for a reader; empty without either."""
        return " ".join(self._filled(part) for part in (self.cause, self.advice) if part)

    @property
    def cells(self) -> tuple[str, ...]:
        """Every cell that a number comes from, once."""
        return tuple(dict.fromkeys(cell for number in self.numbers.values() for cell in number.cells))

    def _filled(self, words: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: str(self.numbers.get(found[1], found[0])), words)


def enough(*, comparison: Comparison | None = None, change: Comparison | None = None) -> bool:
    """Whether there is enough behind a sentence; what is not given is not asked for.

    comparison: that a word is said of, so that several processes measured both, or it is known not to compare. change:
    a percentage, which must be larger than what unchanged cells differ by.
    """
    if comparison is not None and not (comparison.has_interval or comparison.verdict == NOT_COMPARABLE):
        return False
    return change is None or change.is_beyond_margin


def speed(found: Comparison, cells: tuple[str, ...], show: Callable[[Comparison], str] = ratio_and_interval) -> Number:
    """A ratio of two times that is printed with its interval."""
    return Number(found.ratio, cells, lambda _: show(found))


def counted(
    found: Sequence[tuple[str, Comparison]], most_names: int = 4, is_most_first: bool = False
) -> tuple[str, list[str]]:
    """(`faster in 12 of 18 cells, same in 6 (small at 128, …)`, the verdicts in it) of (name, comparison).

    Those without a verdict count in the 18 and nowhere else; empty where none has one. Of what is faster no names.
    """
    names: dict[str, list[str]] = {word: [] for word in _WORDS}
    for name, each in found:
        if enough(comparison=each):
            names[each.verdict].append(name)
    words = [word for word in _WORDS if names[word]]
    if is_most_first:
        words.sort(key=lambda word: -len(names[word]))
    parts = []
    for at, word in enumerate(words):
        own = names[word]
        is_told = at > 0 if is_most_first else word != FASTER
        of = "" if parts else f" of {formatting.cells(len(found))}"
        parts.append(f"{word} in {len(own):,}{of}" + f" ({formatting.listing(own, most_names)})" * is_told)
    return ", ".join(parts), words


def without_verdict(found: Iterable[Comparison | None], hardware: str = "") -> list[Finding]:
    """That some comparisons are without an interval, said once for all of them; nothing where none is."""
    found = [each for each in found if each]
    single = sum(not enough(comparison=each) for each in found)
    if not single:
        return []
    many = "" if single == len(found) else f" in {single:,} of {len(found):,} comparisons"
    answer = f"Single process, or two that disagree: no verdict{many}."
    return [Finding("what has no verdict", answer, hardware=hardware)]


def key_of(*words: object) -> str:
    """A number's name made of such as `sdpa-flash` and `forward`: `sdpa_flash_forward`."""
    return re.sub(r"\W", "_", "_".join(map(str, words)))


def texts(findings: Iterable[Finding], several_machines: bool = False) -> list[str]:
    """The sentences of findings in their order; with the machine's label in front where there are several."""
    return [
        f"On {each.hardware}: {each.text}" if several_machines and each.hardware else each.text for each in findings
    ]


def by_machine(findings: Iterable[Finding], labels: list[str], alone: str = "") -> list[tuple[str, list[str]]]:
    """[(machine's label, sentences)] in the order of the labels, first (`""`, what is about no single machine).

    With one machine its label is omitted. alone: the one machine of several that a study ran on, which its
    findings need not name.
    """
    parts: dict[str, list[str]] = {label: [] for label in ["", *labels]}
    for each in findings:
        place = each.hardware if len(labels) > 1 and each.hardware in labels else alone
        parts[place].append(each.text)
    return [(label, own) for label, own in parts.items() if own]
