"""How time and memory of attention grow with the length, and what a larger d costs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import linear_regression

from stepscope.report.data.attention import Group, count, median
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Cell, Column, Table
from stepscope.report.studies.attention.tables import before_backward

LONGEST = 3  # lengths that an exponent is fitted to: the longest ones, since short passes are launches, not arithmetic
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


def exponent(values: dict[float, float]) -> float:
    """Slope of the least-squares line through (log length, log value)."""
    logs = [[math.log(number) for number in numbers] for numbers in (values, values.values())]
    return linear_regression(*logs).slope


def growths(group: Group) -> list[Growth]:
    """The exponents at every d, fitted to the longest lengths that were measured; none from a single length."""
    found = []
    for precision, name, d_head, quantity in _series(group):
        known = dict(sorted(_by_length(group, name, precision, d_head, quantity).items())[-LONGEST:])
        if len(known) > 1:
            found.append(Growth(name, precision, d_head, quantity, exponent(known), min(known), max(known)))
    return found


def _series(group: Group) -> list[tuple[str, str, float, str]]:
    return [
        (precision, name, d_head, quantity)
        for precision in group.values("precision")
        for name in group.values("implementation", precision)
        for d_head in group.values("d_head", precision)
        for quantity in QUANTITIES
    ]


def _by_length(group: Group, name: str, precision: str, d_head: float, quantity: str) -> dict[float, float]:
    """Length -> value of a quantity, where there is one."""
    direction, value = QUANTITIES[quantity]
    rows = {length: group.at(name, precision, d_head, length, direction) for length in group.values("length")}
    return {length: found for length, row in rows.items() if (found := value(row))}


def factors(group: Group) -> list[Factor]:
    """What the largest d takes over the smallest, at the longest length that was measured at both."""
    found = []
    for precision in group.values("precision"):
        sizes = group.values("d_head", precision)
        for name in group.values("implementation", precision) if len(sizes) > 1 else ():
            for quantity in QUANTITIES:
                ends = [_by_length(group, name, precision, d_head, quantity) for d_head in (sizes[0], sizes[-1])]
                for length in sorted(set(ends[0]) & set(ends[1]))[-1:]:
                    factor = ends[1][length] / ends[0][length]
                    found.append(Factor(name, precision, quantity, factor, length, sizes[0], sizes[-1]))
    return found


def growth_table(group: Group) -> Table | None:
    """A row for each precision and implementation: exponents over all d, and factors of d; None where nothing grew."""
    grown, grown_with_d = growths(group), factors(group)
    if not grown:
        return None
    shown = [name for name in QUANTITIES if any(each.quantity == name for each in grown)]
    columns = [Column(name, number=False) for name in ("precision", "implementation")]
    columns += [
        Column("lengths", "tokens"),
        *(Column(_label(name), group="grows as length to the power of") for name in shown),
    ]
    with_d = [name for name in shown if any(each.quantity == name for each in grown_with_d)]
    columns += [Column(_label(name), group=_factor_group(grown_with_d)) for name in with_d]
    columns += [Column("at length", "tokens")] if with_d else []
    rows = []
    for key in dict.fromkeys((each.precision, each.implementation) for each in grown):
        own = [each for each in grown if (each.precision, each.implementation) == key]
        of_d = [each for each in grown_with_d if (each.precision, each.implementation) == key]
        line = [Cell(key[0]), Cell(key[1]), _lengths(own)]
        line += [_range([each.exponent for each in own if each.quantity == name]) for name in shown]
        line += [_range([each.factor for each in of_d if each.quantity == name]) for name in with_d]
        rows.append(line + ([count(max((each.length for each in of_d), default=None))] if with_d else []))
    caption = f"Growth with the length and with d, {group.place}."
    note = (
        f"Exponents: least-squares lines through the logarithms at the longest {LONGEST} lengths that were measured, "
        "the range over d."
    )
    return Table(f"attention-growth-{group.hardware}", caption, columns, rows, [note], grouped=True)


def _label(quantity: str) -> str:
    return "memory before backward" if quantity == "memory" else f"{quantity} time"


def _factor_group(found: list[Factor]) -> str:
    ends = {(each.smallest, each.largest) for each in found}
    if len(ends) != 1:
        return "largest d over smallest"
    ((smallest, largest),) = ends
    return f"d = {largest:,.0f} over d = {smallest:,.0f}"


def _lengths(found: list[Growth]) -> Cell:
    first, last = min(each.first for each in found), max(each.last for each in found)
    return Cell(f"{first:,.0f} to {last:,.0f}", sort=last)


def _range(values: list[float]) -> Cell:
    """`1.96 to 2.03`; two decimals, since exponents are compared with 1 and 2."""
    return Cell(two_decimals(values), sort=max(values)) if values else Cell("–")


def two_decimals(values: list[float]) -> str:
    """`1.96 to 2.03`, or one number."""
    low, high = (formatting.fixed(end(values), 2) for end in (min, max))
    return low if low == high else f"{low} to {high}"
