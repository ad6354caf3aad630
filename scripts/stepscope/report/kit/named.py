"""What facts are made of: their classes, text of records, and what an object holds by its names."""

import dataclasses
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeVar, dataclass_transform

Kind = TypeVar("Kind")
Item = TypeVar("Item")


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
def frozen(kind: type[Kind]) -> type[Kind]:
    """A class of facts: a dataclass that is made by names, does not change, and equals itself
    alone."""
    return dataclasses.dataclass(frozen=True, kw_only=True, eq=False)(kind)


class Name(str):
    """Text of a record: Markdown shows it as it is, wherever a template prints it."""


def named(facts: object) -> dict[str, object]:
    """Of a dataclass: what it is given, but for the tables (`data`), and what follows from that.

    What follows are its cached properties, but for those that are the module's own (`_name`).
    """
    assert dataclasses.is_dataclass(facts) and not isinstance(facts, type)
    names = [each.name for each in dataclasses.fields(facts) if each.name != "data"]
    for kind in reversed(type(facts).__mro__):
        derived = [name for name, each in vars(kind).items() if isinstance(each, cached_property)]
        names += [name for name in derived if not name.startswith("_")]
    return {name: getattr(facts, name) for name in names}


def value_at(row: object, path: str) -> object:
    """What an object or dictionary has by this name, or path of names; None below what is
    missing."""
    value = row
    for name in path.split("."):
        if value is None:
            return None
        value = value.get(name) if isinstance(value, dict) else getattr(value, name)
    return value


def first_of(items: Iterable[Item]) -> Item | None:
    """The first one; None of none."""
    return next(iter(items), None)


def made_of(made: Callable[..., Item], *paths: str, **others: object) -> cached_property[Item]:
    """The fact that a function makes of others, which are named by their paths."""

    def of_facts(facts: object) -> Item:
        return made(*(value_at(facts, path) for path in paths), **others)

    return cached_property(of_facts)
