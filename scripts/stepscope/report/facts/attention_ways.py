"""Implementations of attention beside each other: at one length, over all lengths, and the best of
other shapes and precisions."""

from collections.abc import Iterable
from functools import cached_property

from stepscope.report.facts.machine import machine
from stepscope.report.kit.data import Data, Row, grouped, of_ratio
from stepscope.report.kit.named import Name, first_of, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, least, plus, share

PLAIN = "naive"


def _series(quantity: str, direction: str) -> cached_property[Maybe]:
    """The fact that is a series of an implementation."""

    def measured(way: "Way") -> Maybe:
        same = {"cell": way.cell, "variant": str(way.name), "length": way.length.value}
        return way.data.measured(quantity, direction=direction, **same)

    return cached_property(measured)


def _gain(direction: str) -> cached_property[Maybe]:
    """The fact that is a comparison with naive attention: times as fast."""

    def compared(way: "Way") -> Maybe:
        same = {"cell": way.cell, "length": way.length.value, "direction": direction}
        rows = way.data.dicts("comparisons", a=PLAIN, b=str(way.name), **same)
        return of_ratio(first_of(rows) or {})

    return cached_property(compared)


@frozen
class Way:
    """An implementation in a cell, at a length."""

    data: Data
    cell: str
    name: Name
    length: Quantity

    forward = _series("time", "forward")
    backward = _series("time", "backward")
    rate = _series("rate", "forward")
    kept = _series("before_backward", "backward")
    gain = _gain("forward")
    backward_gain = _gain("backward")

    @cached_property
    def of_ceiling(self) -> Maybe:
        """The rate, of a large product's."""
        precision = self.data.row("cells", cell=self.cell)["precision"]
        return share(self.rate, machine(self.data).rate(precision))

    @property
    def both(self) -> Maybe:
        """Forward and backward together."""
        return plus(self.forward, self.backward)


def ways(data: Data, cell: str, length: float) -> list[Way]:
    """Each implementation of a cell that was timed at a length."""
    rows = data.series(cell=cell, quantity="time", length=length)
    names = dict.fromkeys(row["variant"] for row in rows)
    at = count(length)
    return [Way(data=data, cell=cell, name=Name(name), length=at) for name in names]


def naive_of(ways: Iterable[Way]) -> Way | None:
    """Attention as it is written out."""
    return first_of(way for way in ways if way.name == PLAIN)


def others_of(ways: Iterable[Way]) -> list[Way]:
    """All but that."""
    return [way for way in ways if way.name != PLAIN]


def lengths(data: Data, cell: str) -> list[Row]:
    """Naive attention beside the fastest other one at every length; none of a single length.

    A row's length (a count of positions), and two ways, of which either may be missing.
    """
    rows = data.series(cell=cell, quantity="time", direction="forward")
    found = []
    for length in sorted({row["length"] for row in rows}):
        there = ways(data, cell, length)
        fastest = least(others_of(there), "forward")
        found.append({"length": count(length), "naive": naive_of(there), "fastest": fastest})
    return found if len(found) > 1 else []


def shapes(data: Data, shown: str) -> list[Row]:
    """Each other cell at its longest length.

    what: its shape and precision. fastest: the way whose passes take least together, of so many
    ways; where none has both passes, the one whose forward pass takes least.
    """
    rows = [row for row in data.series(study="attention") if row["cell"] != shown]
    found = []
    for (cell,), own in grouped(rows, "cell").items():
        there = ways(data, cell, max(row["length"] for row in own))
        fastest = least(there, "both") or least(there, "forward")
        one = own[0]
        options = map(_words, one["options"].split())
        what = Name(", ".join([one["size"], one["precision"], *options]))
        if fastest:
            found.append({"what": what, "fastest": fastest, "ways": count(len(there))})
    return found


def _words(option: str) -> str:
    key, _, value = option.partition("=")
    return value if key == "mask" else f"{key.replace('_', ' ')} {int(value):,}"
