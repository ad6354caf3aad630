"""Machines side by side: the same places, each beside the first machine, and what the ceilings
predict."""

from collections import Counter
from dataclasses import dataclass

from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.kit.data import Data, machines, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, count, over


@frozen
class Beside:
    """A machine's ceilings."""

    name: Name
    memory: Maybe
    fp32: Maybe
    bf16: Maybe
    copy: Maybe


@frozen
class Same:
    """A place on another machine: its step, and times as fast as on the first."""

    machine: Name
    place: Name
    precision: Name
    first: Maybe
    step: Maybe
    ratio: Maybe
    products: Maybe
    copies: Maybe
    limits: str


@frozen
class Machines:
    """first: the machine that the others are compared with."""

    machine: Machine
    first: Name | None = None
    machines: tuple[Beside, ...] = ()
    places: tuple[Same, ...] = ()
    left_out: Maybe = None


MOST = 24  # rows; more are in the tables
Key = tuple[str, int, int, str]  # of a place: size, context, batch, precision


@dataclass(frozen=True)
class Step:
    """Of a place on a machine, and what limits it."""

    place: Place
    time: Maybe
    limits: str


def facts(data: Data) -> Machines | None:
    """Of all machines of the tables; None of a single one."""
    labels = machines(data.folder)
    if len(labels) < 2:
        return None
    tables = {label: Data(data.folder, label) for label in labels}
    known = {label: machine(own) for label, own in tables.items()}
    first = data.machine or labels[0]
    counts = Counter(own.name for own in known.values())
    names = {label: own.name if counts[own.name] == 1 else label for label, own in known.items()}
    first_steps = _steps(tables[first], known[first])
    same = []
    for label in labels:
        steps = _steps(tables[label], known[label]) if label != first else {}
        for key in filter(first_steps.__contains__, steps):
            row = _same(names[label], known[label], steps[key], known[first], first_steps[key])
            same.append(row)
    left_out = len(same) - MOST
    return Machines(
        machine=known[first],
        first=Name(names[first]),
        machines=tuple(_beside(names[label], own) for label, own in known.items()),
        places=tuple(same[:MOST]),
        left_out=count(left_out) if left_out > 0 else None,
    )


def _beside(name: str, own: Machine) -> Beside:
    return Beside(
        name=Name(name),
        memory=own.memory,
        fp32=own.rate("fp32"),
        bf16=own.rate("bf16"),
        copy=own.copy,
    )


def _same(name: str, own: Machine, step: Step, first: Machine, first_step: Step) -> Same:
    precision = step.place.precision
    return Same(
        machine=Name(name),
        place=step.place.name,
        precision=Name(precision),
        first=first_step.time,
        step=step.time,
        ratio=over(first_step.time, step.time),
        products=over(own.rate(precision), first.rate(precision)),
        copies=over(own.copy, first.copy),
        limits=step.limits,
    )


def _steps(data: Data, own: Machine) -> dict[Key, Step]:
    """The plain steps by their place and precision."""
    same = {"study": "timing", "mode": "step", "phase": "step", "options": ""}
    found: dict[Key, Step] = {}
    for row in data.series(quantity="time", **same):
        where = place(data, own, row, row["precision"])
        if where:
            found[*where.key, where.precision] = Step(where, of_series(row), row["limits"])
    return found
