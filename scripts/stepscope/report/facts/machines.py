"""Machines side by side: the same places, each beside the first machine, and what the ceilings
predict."""

from collections import Counter
from dataclasses import dataclass

from stepscope.report.facts.machine import Machine, machine, place
from stepscope.report.kit.data import Data, machines, of_series
from stepscope.report.kit.page import Name
from stepscope.report.kit.quantity import Maybe, count, over


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A machine's ceilings."""

    name: Name
    memory: Maybe
    fp32: Maybe
    bf16: Maybe
    copy: Maybe


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class Machines:
    """first: the machine that the others are compared with."""

    machine: Machine
    first: Name | None = None
    machines: tuple[Beside, ...] = ()
    places: tuple[Same, ...] = ()
    left_out: Maybe = None


MOST = 24  # rows; more are in the tables


def facts(data: Data) -> Machines | None:
    """Of all machines of the tables; None of a single one."""
    there = machines(data.folder)
    if len(there) < 2:
        return None
    every = {name: Data(data.folder, name) for name in there}
    known = {name: machine(own) for name, own in every.items()}
    reference = data.machine or there[0]
    counts = Counter(one.name for one in known.values())
    names = {label: one.name if counts[one.name] == 1 else label for label, one in known.items()}
    base = _steps(every[reference], known[reference])
    same = []
    for name in (each for each in there if each != reference):
        for key, (where, step, limits) in _steps(every[name], known[name]).items():
            if key in base:
                first = base[key][1]
                precision = where.precision
                same.append(
                    Same(
                        machine=Name(names[name]),
                        place=where.name,
                        precision=Name(precision),
                        first=first,
                        step=step,
                        ratio=over(first, step),
                        products=over(
                            known[name].rate(precision), known[reference].rate(precision)
                        ),
                        copies=over(known[name].copy, known[reference].copy),
                        limits=limits,
                    )
                )
    return Machines(
        machine=known[reference],
        first=Name(names[reference]),
        machines=tuple(
            Beside(
                name=Name(name),
                memory=own.memory,
                fp32=own.rate("fp32"),
                bf16=own.rate("bf16"),
                copy=own.copy,
            )
            for name, own in zip(names.values(), known.values(), strict=True)
        ),
        places=tuple(same[:MOST]),
        left_out=count(len(same) - MOST) if len(same) > MOST else None,
    )


def _steps(data: Data, own: Machine) -> dict:
    """(size, context, batch, precision) → place, step without the host where it is known, what
    limits it."""
    made = {}
    for row in data.series(study="timing", quantity="time", mode="step", phase="step", options=""):
        where = place(data, own, row, row["precision"])
        if where:
            made[*where.key, row["precision"]] = (where, of_series(row), row["limits"])
    return made
