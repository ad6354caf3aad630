"""What holds for every chapter, whatever was measured; and the committed example."""

import re

import committed_example
from page_one_maker import STUDIES
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.blocks import Picture, Table
from stepscope.report.kit.chapter import (
    MOST_PICTURES,
    MOST_ROWS,
    MOST_TABLES,
    MOST_TAKEAWAY_WORDS,
    MOST_WORDS,
    Chapter,
    fitted,
    words,
)
from stepscope.report.kit.finding import Finding
from stepscope.tables.reader import Tables

MOST_SENTENCE_WORDS = 30


def example() -> Machine:
    """The machine of the committed example."""
    return Machine(Tables(committed_example.tables(), STUDIES))


def check(chapter: Chapter) -> None:
    """Its budgets, and that no name of a number is left in its text."""
    short = fitted(chapter)
    assert short.words <= MOST_WORDS and short.takeaway
    assert sum(words(each.text) for each in chapter.takeaway) <= MOST_TAKEAWAY_WORDS
    shown = [each for part in chapter.parts for each in part.shows]
    tables = [each for each in shown if isinstance(each, Table)]
    assert len(tables) <= MOST_TABLES and all(len(each.rows) <= MOST_ROWS for each in tables)
    assert sum(isinstance(each, Picture) for each in shown) <= MOST_PICTURES
    for each in chapter.findings:
        assert not re.search(r"[{}]|\bnan\b|None|  ", each.text), each.text
        assert max(words(sentence) for sentence in sentences(each)) <= MOST_SENTENCE_WORDS, each.text


def sentences(finding: Finding) -> list[str]:
    return re.split(r"(?<=[.:;!?])\s+", finding.text)


def told(chapter: Chapter) -> dict[str, Finding]:
    """question → finding; of several with the same question the first one."""
    found: dict[str, Finding] = {}
    for each in chapter.findings:
        found.setdefault(each.question, each)
    return found


def values(finding: Finding) -> dict:
    return {name: number.value for name, number in finding.numbers.items()}
