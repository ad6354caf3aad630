"""How time and memory of attention grow with the length, and what a larger d costs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import linear_regression

from stepscope.report.data.attention import Group, before_backward, median
from stepscope.report.kit.finding import LEAST_POINTS, enough

# Lengths that an exponent is fitted to: the longest ones, since short passes are launches, not arithmetic.
LONGEST = LEAST_POINTS
# What grows -> (direction of the row, its value).
QUANTITIES: dict[str, tuple[str, Callable[[dict], float | None]]] = {
    "forward": ("forward", median),
    "backward": ("backward", median),
    "memory": ("backward", before_backward),
}


@dataclass(frozen=True)
class Growth:
    """One quantity at one d: it grows as length ** exponent between the first and the last length."""

    implementation: str
    precision: str
    d_head: float
    quantity: str
    exponent: float
    first: float
    last: float
    cells: tuple[str, ...]


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


def exponent(values: dict[float, float]) -> float:
    """Slope of the least-squares line through (log length, log value)."""
    logs = [[math.log(number) for number in numbers] for numbers in (values, values.values())]
    return linear_regression(*logs).slope


def growths(group: Group) -> list[Growth]:
    """The exponents at every d, fitted to the longest lengths that were measured, where these are enough."""
    found = []
    for precision, name in group.series():
        for d_head in group.values("d_head", precision):
            for quantity, (_, value) in QUANTITIES.items():
                rows = _by_length(group, name, precision, d_head, quantity)
                known = {length: value(rows[length]) for length in sorted(rows)[-LONGEST:]}
                if enough(points=known):
                    slope, cells = exponent(known), _cells(rows[length] for length in known)
                    found.append(Growth(name, precision, d_head, quantity, slope, min(known), max(known), cells))
    return found


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
