"""What a section is made of besides prose. Each block is written by two back ends: markdown.py and webpage.py."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, and how build() of table.py fills it.

    `group` stands above neighbouring columns that share it. Numbers are right-aligned, `wrap`ped text may take several
    lines. `value` is the name of a row's field, or a function of the row that gives a value or a whole TableCell;
    `show` prints a value. An `optional` column is omitted where no row has a value.
    """

    label: str
    unit: str = ""
    group: str = ""
    number: bool = True
    wrap: bool = False
    value: str | Callable[[Any], Any] | None = None
    show: Callable[[Any], str] | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class TableCell:
    """A table's cell: a main line, a smaller line below, badges, a link; `sort` is the number that sorting uses.

    `title` is the whole text where the cell shows a part of it; the web page shows it to who points at the cell.
    """

    text: str = ""
    below: str = ""
    sort: float | None = None
    badges: tuple[str, ...] = ()
    link: str = ""
    code: bool = False
    title: str = ""


@dataclass(slots=True)
class Table:
    """`notes` stand below the table. A `folded` table is closed until the reader opens it. In a `grouped` one the rows
    that begin with the same text belong together. about: what all rows are of, such as {"precision": "bf16"}, where no
    column says it; the data page filters by it."""

    name: str
    caption: str
    columns: list[Column]
    rows: list[list[TableCell]]
    notes: list[str] = field(default_factory=list)
    folded: bool = False
    grouped: bool = False
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Picture:
    """A figure: the name of its file, what to see and the fixed parameters, and its alt text."""

    name: str
    caption: str
    alternative: str


@dataclass(slots=True)
class Fold:
    """A part of a section that is closed until the reader opens it: its name, and the numbers to know before.

    about: as of a Table.
    """

    title: str
    facts: str = ""
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Box:
    """A warning at the top: a title, a sentence, and the things that it is about."""

    title: str
    sentence: str
    table: Table


# A badge's text, and what it means. Sections pass the keys.
BADGES = {
    "oom": ("OOM", "out of memory; the peak that was reached is given"),
    "unsupported": ("n/a", "not possible on this machine; the reason is below the table"),
    "noisy": (
        "~",
        "noisy: the 95 % confidence interval is wider than the configured mark",
    ),
    "unsteady": ("unsteady", "the processes differ by more than chance allows"),
    "throttled": ("throttled", "the GPU lowered its clocks during the measurement"),
    "slow_host": ("slow host", "the host was slow then: a fixed loop took more than 1.25 times as long as at its best"),
    "shared": ("shared", "another process used the GPU"),
    "failed": ("failed", "the measurement failed"),
    "missing": ("missing", "not measured"),
    "ok": ("ok", "measured"),
}


def badge(key: str) -> tuple[str, str]:
    """(text, meaning) of a badge; an unknown one stands for itself."""
    return BADGES.get(key, (key, key))
