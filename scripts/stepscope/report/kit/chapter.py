"""A chapter: a takeaway, and answers to questions with the few figures and tables that show them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stepscope.report.kit.blocks import Picture, Table
from stepscope.report.kit.finding import Finding

MOST_WORDS = 450  # of a chapter's questions and sentences
MOST_TAKEAWAY_WORDS = 60
MOST_PICTURES, MOST_TABLES = 2, 2
MOST_ROWS = 12  # of a table


@dataclass(frozen=True)
class Part:
    """A question as a reader asks it, the findings that answer it in their order, and what is shown below them."""

    question: str
    findings: tuple[Finding, ...]
    shows: tuple[Picture | Table, ...] = ()


@dataclass(frozen=True)
class Chapter:
    """The most important part stands first; where words are too many, fitted() takes findings from the end.

    name: what page one links to. data: the sections of the data page that hold all of its tables, in their order.
    """

    name: str
    title: str
    takeaway: tuple[Finding, ...]
    parts: tuple[Part, ...]
    data: tuple[str, ...]

    @property
    def findings(self) -> Iterator[Finding]:
        """All of them, those of the takeaway first."""
        yield from self.takeaway
        for part in self.parts:
            yield from part.findings

    @property
    def words(self) -> int:
        """Of the title, the questions and all sentences; captions and tables do not count."""
        told = [self.title, *(part.question for part in self.parts), *(each.text for each in self.findings)]
        return words(" ".join(told))


def words(text: str) -> int:
    """How many words a reader counts: what has a letter or a digit."""
    return sum(bool(re.search(r"\w", each)) for each in text.split())


def fitted(chapter: Chapter, most: int = MOST_WORDS) -> Chapter:
    """The chapter without its last findings where it is too long, and without parts that have nothing left to say."""
    parts = [part for part in chapter.parts if part.findings]
    while parts and replace(chapter, parts=tuple(parts)).words > most:
        parts[-1] = replace(parts[-1], findings=parts[-1].findings[:-1])
        if not parts[-1].findings:
            parts.pop()
    return replace(chapter, parts=tuple(parts))
