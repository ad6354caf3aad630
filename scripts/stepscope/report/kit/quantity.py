"""A number with all that is needed to print and to trust it, and arithmetic on numbers of which
some are missing."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from . import number_format
from .named import first_of, value_at

Row = TypeVar("Row")


@dataclass(frozen=True)
class Quantity:
    """A value in `unit` (a key of number_format.UNITS), its 95 % interval, whether it is in doubt,
    its cells, and what of them it is `of`: `series.time`, or another table's name and column.

    In doubt is what one process alone measured while others of its kind have an interval: tables
    print a dagger.
    """

    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    doubt: bool = False
    cells: tuple[str, ...] = ()
    of: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        """As in a sentence: `424 ms`, `4.25 [3.0, 7.0]`."""
        return number_format.in_prose(self)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval; None where an end is not known."""
        if self.low is None or self.high is None:
            return None
        return self.low, self.high

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return self.ends is not None

    @property
    def half_width(self) -> float:
        """Half the interval, as a share of the value; 0 without one."""
        if self.ends is None or not self.value:
            return 0.0
        low, high = self.ends
        return (high - low) / (2 * abs(self.value))


Maybe = Quantity | None  # what was not measured is None, and so is what is made of it


def within(quantity: Quantity, low: float, high: float) -> Quantity:
    """The quantity with this interval; without one where an end is no number."""
    if math.isnan(low) or math.isnan(high):
        return quantity
    return replace(quantity, low=low, high=high)


def joined(*parts: Maybe) -> tuple[str, ...]:
    """The cells of all of them, each once, in their order."""
    known = [part for part in parts if part]
    return tuple(dict.fromkeys(cell for part in known for cell in part.cells))


def _made(value: float, unit: str, *parts: Maybe) -> Quantity:
    """A value that is made of others."""
    names = [name for part in parts if part for name in part.of]
    return Quantity(value, unit, cells=joined(*parts), of=tuple(dict.fromkeys(names)))


def over(a: Maybe, b: Maybe, unit: str = "1") -> Maybe:
    """a / b; the logarithms of independent intervals add in quadrature (propagation of
    uncertainty)."""
    if a is None or b is None or not b.value:
        return None
    value = a.value / b.value
    ratio = replace(_made(value, unit, a, b), doubt=a.doubt or b.doubt)
    intervals = [each.ends for each in (a, b) if each.ends and each.ends[0] > 0]
    if not intervals:
        return ratio
    logs = [math.log(high / low) / 2 for low, high in intervals]
    factor = math.exp(math.hypot(*logs))
    return within(ratio, value / factor, value * factor)


def minus(a: Maybe, b: Maybe) -> Maybe:
    """a − b, in a's unit, without an interval."""
    if a is None or b is None:
        return None
    return _made(a.value - b.value, a.unit, a, b)


def plus(*parts: Maybe) -> Maybe:
    """The sum; missing if a part is, or if there is none."""
    known = [part for part in parts if part]
    if not known or len(known) < len(parts):
        return None
    return _made(sum(part.value for part in known), known[0].unit, *known)


def scaled(a: Maybe, factor: float, unit: str = "") -> Maybe:
    """a × factor, interval and all, in a new unit if one is given."""
    if a is None:
        return None
    product = replace(_made(a.value * factor, unit or a.unit, a), doubt=a.doubt)
    if a.ends is None:
        return product
    low, high = a.ends
    return within(product, low * factor, high * factor)


def share(part: Maybe, whole: Maybe) -> Maybe:
    """part / whole, as percent, without an interval."""
    return exact(over(part, whole, "share"))


def time_of(work: Maybe, rate: Maybe) -> Maybe:
    """Seconds that so many FLOP or bytes take at so many a second: every prediction of a time is
    one of these."""
    return exact(over(work, rate, "s"))


def gap(measured: Maybe, predicted: Maybe) -> Maybe:
    """How far the measured value is off the predicted one, of the predicted: +0.28 is 28 % more."""
    ratio = over(measured, predicted)
    return _made(ratio.value - 1, "gap", ratio) if ratio else None


def is_below(a: Maybe, b: Maybe, factor: float = 1.0) -> bool:
    """Whether a is known to be less than b × factor: what a claim of the prose rests on."""
    return a is not None and b is not None and a.value < factor * b.value


def count(value: float, *cells: str) -> Quantity:
    """A number of things."""
    return Quantity(float(value), "count", cells=cells)


def exact(quantity: Maybe) -> Maybe:
    """Without its interval."""
    return _made(quantity.value, quantity.unit, quantity) if quantity else None


def value_of(quantity: Maybe, missing: float = 0.0) -> float:
    """The bare number, to put things in order; `missing` where it was not measured."""
    return quantity.value if quantity else missing


def positive(quantity: Maybe) -> Maybe:
    """What is above 0."""
    return quantity if value_of(quantity) > 0 else None


def ordered(rows: Iterable[Row], path: str, reverse: bool = False) -> list[Row]:
    """Those that have a quantity at this path, the smallest first."""
    values = [(value_at(row, path), row) for row in rows]
    known = [(value.value, row) for value, row in values if isinstance(value, Quantity)]
    return [row for _, row in sorted(known, key=lambda each: each[0], reverse=reverse)]


def most(rows: Iterable[Row], path: str) -> Row | None:
    """The one of which that is largest."""
    return first_of(ordered(rows, path, reverse=True))


def least(rows: Iterable[Row], path: str) -> Row | None:
    """The one of which it is smallest."""
    return first_of(ordered(rows, path))
