"""Implementations of attention beside each other: at one length, over all lengths, and what a call
costs the host."""

from functools import cached_property

from stepscope.report.facts.machine import Machine
from stepscope.report.kit.data import Data, Row, grouped, of_ratio, of_series
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, share, value_of

PLAIN = "naive"


@frozen
class Way:
    """An implementation at the longest length that all of the cell reached. gain: times as fast as
    naive attention."""

    name: Name
    forward: Maybe
    backward: Maybe
    rate: Maybe
    of_ceiling: Maybe
    gain: Maybe
    backward_gain: Maybe
    kept: Maybe

    @property
    def both(self) -> float:
        """Seconds of forward and backward together."""
        return value_of(self.forward) + value_of(self.backward)


@frozen
class Length:
    """A length: naive attention beside the fastest implementation there."""

    length: Quantity
    naive: Maybe
    fastest: Name | None
    time: Maybe
    kept: Maybe


@frozen
class HostCall:
    """A call's forward pass: how long it keeps the host busy, and the GPU."""

    name: Name
    length: Quantity
    time: Maybe
    gpu: Maybe

    @cached_property
    def is_limiting(self) -> bool:
        """Whether the host takes longer."""
        return self.gpu is not None and self.gpu.value < value_of(self.time)


def ways(data: Data, own: Machine, cell: Row, length: float) -> tuple[Way, ...]:
    """Each implementation of a cell, named by one of its rows, at a length."""
    same = {"cell": cell["cell"], "length": length}
    judged = data.dicts("comparisons", a=PLAIN, **same)
    gains = {(row["direction"], row["b"]): of_ratio(row) for row in judged}
    ceiling = own.rate(cell["precision"])
    found = []
    for name in dict.fromkeys(row["variant"] for row in data.series(cell=cell["cell"])):
        forward = {"variant": name, "direction": "forward", **same}
        backward = {"variant": name, "direction": "backward", **same}
        rate = data.measured("rate", **forward)
        way = Way(
            name=Name(name),
            forward=data.measured("time", **forward),
            backward=data.measured("time", **backward),
            rate=rate,
            of_ceiling=share(rate, ceiling),
            gain=gains.get(("forward", name)),
            backward_gain=gains.get(("backward", name)),
            kept=data.measured("before_backward", **backward),
        )
        if way.forward or way.backward:
            found.append(way)
    return tuple(found)


def lengths(data: Data, cell: str) -> tuple[Length, ...]:
    """Naive attention beside the fastest other one at every length; none of a single length."""
    same = {"cell": cell, "quantity": "time", "direction": "forward"}
    found = []
    for (length,), rows in sorted(grouped(data.series(**same), "length").items()):
        others = [row for row in rows if row["variant"] != PLAIN]
        fastest = min(others, key=lambda row: row["median"], default=None)
        plain = {"cell": cell, "variant": PLAIN, "length": length}
        row = Length(
            length=count(length),
            naive=data.measured("time", direction="forward", **plain),
            fastest=Name(fastest["variant"]) if fastest else None,
            time=of_series(fastest) if fastest else None,
            kept=data.measured("before_backward", **plain),
        )
        found.append(row)
    return tuple(found) if len(found) > 1 else ()


def host_call(data: Data, cell: str) -> HostCall | None:
    """Of the implementation that takes the host longest, at the shortest length at which that was
    measured."""
    rows = data.series(cell=cell, quantity="host_time", direction="forward")
    if not rows:
        return None
    row = min(rows, key=lambda row: (row["length"], -row["median"]))
    same = {name: row[name] for name in ("cell", "variant", "length", "direction")}
    return HostCall(
        name=Name(row["variant"]),
        length=count(row["length"]),
        time=of_series(row),
        gpu=data.measured("time", **same),
    )
