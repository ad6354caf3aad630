"""Machines side by side: the same places, each beside the first machine, and what the ceilings
predict."""

from collections import Counter
from functools import cached_property

from stepscope.report.kit.data import Data, machines
from stepscope.report.kit.named import Name, frozen, made_of
from stepscope.report.kit.quantity import Maybe, count, over

from .machine import Machine, machine
from .timed import Timed, timed


@frozen
class Same:
    """A step on another machine, beside the first one's."""

    machine: Name
    first: Timed
    step: Timed

    ratio = made_of(over, "first.step", "step.step")  # times as fast as there

    @cached_property
    def products(self) -> Maybe:
        """The ratio of the ceilings."""
        precision = self.step.place.precision
        return over(_of(self.step).rate(precision), _of(self.first).rate(precision))

    @cached_property
    def copies(self) -> Maybe:
        """Likewise."""
        return over(_of(self.step).copy, _of(self.first).copy)


@frozen
class Machines:
    """first: what the machine is called that the others are compared with."""

    machine: Machine
    first: Name
    machines: list[dict[str, object]]
    places: list[Same]
    left_out: Maybe


MOST = 24  # rows; more are in the tables


def facts(data: Data) -> Machines | None:
    """Of all machines of the tables; None of a single one."""
    labels = machines(data.folder)
    if len(labels) < 2:
        return None
    tables = {label: Data(data.folder, label, own_steps=False) for label in labels}
    known = {label: machine(own) for label, own in tables.items()}
    counts = Counter(own.name for own in known.values())
    names = {
        label: own.name if counts[own.name] == 1 else Name(label) for label, own in known.items()
    }
    first = data.machine or labels[0]
    first_steps = {_key(each): each for each in timed(tables[first])}
    same = []
    for label in labels:
        steps = timed(tables[label]) if label != first else []
        for step in steps:
            if _key(step) in first_steps:
                same.append(Same(machine=names[label], first=first_steps[_key(step)], step=step))
    left_out = len(same) - MOST
    return Machines(
        machine=known[first],
        first=names[first],
        machines=[{"name": names[label], "own": own} for label, own in known.items()],
        places=same[:MOST],
        left_out=count(left_out) if left_out > 0 else None,
    )


def _of(step: Timed) -> Machine:
    return machine(step.place.data)


def _key(step: Timed) -> tuple[object, ...]:
    return *step.place.key, step.place.precision
