"""What a table consists of: its columns in their order, each with its name, type, unit and meaning.

The fields of a study's tables stand beside the code that writes them; columns.py and training.py have those that
several studies share, registry.py finds a table by its name. Standard library only: the workflow's rules import it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

TEXT, NUMBER, FLAG = "text", "number", "flag"


@dataclass(frozen=True)
class Field:
    """A column. `kind` is TEXT, NUMBER or FLAG (True or False, and False where empty); only numbers have a `unit`.

    An optional one is missing from tables that older versions wrote.
    """

    name: str
    kind: str
    meaning: str
    unit: str = ""
    is_optional: bool = False


def text(name: str, meaning: str, is_optional: bool = False) -> Field:
    """A column of text."""
    return Field(name, TEXT, meaning, is_optional=is_optional)


def flag(name: str, meaning: str, is_optional: bool = False) -> Field:
    """A column of True and False."""
    return Field(name, FLAG, meaning, is_optional=is_optional)


def number(name: str, unit: str, meaning: str, is_optional: bool = False) -> Field:
    """A column of numbers; `unit` is that of a measure, or count, share (0 to 1), ratio."""
    return Field(name, NUMBER, meaning, unit, is_optional)


def count(name: str, meaning: str, is_optional: bool = False) -> Field:
    """A column of numbers that count something."""
    return number(name, "count", meaning, is_optional)


@dataclass(frozen=True)
class Group:
    """Columns that several tables have, or that one table has for each of several things.

    `starts` are the things: how their columns' names start, and what they are. `title` says what the group is of.
    """

    title: str
    members: tuple[Field, ...]
    starts: Mapping[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns: all of the first thing, then all of the next."""
        if not self.starts:
            return self.members
        return tuple(
            replace(each, name=start + each.name, meaning=f"{what}: {each.meaning}")
            for start, what in self.starts.items()
            for each in self.members
        )

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [each.name for each in self.fields]


@dataclass(frozen=True)
class Table:
    """A table: the name of its file without `.csv`, what one of its rows stands for, and its columns."""

    name: str
    row: str
    parts: tuple[Field | Group, ...]

    def __post_init__(self) -> None:
        twice = [name for name in self.by_name if self.columns.count(name) > 1]
        if twice:
            raise ValueError(f"table {self.name} declares {', '.join(twice)} more than once")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """All columns, in the order in which they are written."""
        return tuple(each for part in self.parts for each in (part.fields if isinstance(part, Group) else (part,)))

    @cached_property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return [each.name for each in self.fields]

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """Column → its field."""
        return {each.name: each for each in self.fields}


def chosen(columns: Iterable[str], *vocabularies: Iterable[Field]) -> tuple[Field, ...]:
    """The fields of these columns, in their order; a later vocabulary wins over an earlier one.

    Raises KeyError for a column that none of them has.
    """
    known = {each.name: each for vocabulary in vocabularies for each in vocabulary}
    return tuple(known[name] for name in columns)
