"""What an object of facts holds, by its names: what facts.json lists, and links lead to."""

import dataclasses
from functools import cached_property


def named(facts: object) -> dict[str, object]:
    """Of a dataclass: what it is given, but for the tables (`data`), and what follows from that.

    What follows are its cached properties, but for those that are the module's own (`_name`).
    """
    assert dataclasses.is_dataclass(facts) and not isinstance(facts, type)
    given = [each.name for each in dataclasses.fields(facts) if each.name != "data"]
    derived = [
        name for name, each in vars(type(facts)).items() if isinstance(each, cached_property)
    ]
    public = [name for name in derived if not name.startswith("_")]
    return {name: getattr(facts, name) for name in given + public}
