"""A finding: the answer to a question, with the numbers behind it. Its text is made from them once, on the page."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from stepscope.report.kit import formatting


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
        return " ".join(self._filled(part) for part in (self.answer, self.cause, self.advice) if part)

    @property
    def cells(self) -> tuple[str, ...]:
        """Every cell that a number comes from, once."""
        return tuple(dict.fromkeys(cell for number in self.numbers.values() for cell in number.cells))

    def _filled(self, words: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: str(self.numbers.get(found[1], found[0])), words)


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
