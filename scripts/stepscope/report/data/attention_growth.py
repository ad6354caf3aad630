"""How time and memory of attention grow with the length, and what a larger d costs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from stepscope.report.data.attention import Group, before_backward, median

# What grows -> (direction of the row, its value).
QUANTITIES: dict[str, tuple[str, Callable[[dict], float | None]]] = {
    "forward": ("forward", median),
    "backward": ("backward", median),
    "memory": ("backward", before_backward),
}


@dataclass(frozen=True)
class Growth:
    """One quantity at one d: how many times as much the longest length takes as the one before it.

    No line is fitted: short passes are launches, not arithmetic, and what is left is too few points for one.
    """

    implementation: str
    precision: str
    d_head: float
    quantity: str
    factor: float
    first: float
    last: float
    cells: tuple[str, ...]

    @property
    def lengths(self) -> tuple[float, float]:
        """The one before the longest, and the longest."""
        return self.first, self.last


@dataclass(frozen=True)
class Factor:
    """One quantity at one length: how many times as much the largest d takes as the smallest."""

    implementation: str
    precision: str
    quantity: str
    factor: float
    length: float
    smallest: float
    largest: float
    cells: tuple[str, ...]


def growths(group: Group) -> list[Growth]:
    """Of every implementation and d, between the two longest lengths that were measured; none from a single length."""
    found = []
    for precision, name in group.series():
        for d_head in group.values("d_head", precision):
            for quantity, (_, value) in QUANTITIES.items():
                rows = _by_length(group, name, precision, d_head, quantity)
                lengths = sorted(rows)[-2:]
                if len(lengths) == 2:
                    before, last = (rows[length] for length in lengths)
                    factor, cells = value(last) / value(before), _cells((before, last))
                    found.append(Growth(name, precision, d_head, quantity, factor, *lengths, cells))
    return found


def of_shared_lengths(found: list[Growth]) -> list[Growth]:
    """Those between the two lengths that most of these have, the longest of equals, so that they compare."""
    often = Counter(each.lengths for each in found)
    most = max(often, key=lambda lengths: (often[lengths], lengths), default=None)
    return [each for each in found if each.lengths == most]


def _by_length(group: Group, name: str, precision: str, d_head: float, quantity: str) -> dict[float, dict]:
    """Length -> the result, where it has the quantity."""
    direction, value = QUANTITIES[quantity]
    rows = {length: group.at(name, precision, d_head, length, direction) for length in group.values("length")}
    return {length: row for length, row in rows.items() if value(row)}


def _cells(rows) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row["cell"] for row in rows))


def factors(group: Group) -> list[Factor]:
    """What the largest d takes over the smallest, at the longest length that was measured at both."""
    found = []
    for precision, name in group.series():
        sizes = group.values("d_head", precision)
        for quantity, (_, value) in QUANTITIES.items() if len(sizes) > 1 else ():
            small, large = (_by_length(group, name, precision, d_head, quantity) for d_head in (sizes[0], sizes[-1]))
            length = max(set(small) & set(large), default=None)
            if length is not None:
                ends = small[length], large[length]
                factor = value(ends[1]) / value(ends[0])
                found.append(Factor(name, precision, quantity, factor, length, sizes[0], sizes[-1], _cells(ends)))
    return found
