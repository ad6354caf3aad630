"""A number with all that is needed to print and to trust it, and arithmetic on numbers of which
some are missing."""

import math
from dataclasses import dataclass

from stepscope.report.kit import number_format


@dataclass(frozen=True)
class Quantity:
    """A value in `unit` (a key of number_format.UNITS), its 95 % interval, whether it is in doubt,
    and its cells.

    In doubt is what one process alone measured while others of its kind have an interval: tables
    print a dagger.
    """

    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    doubt: bool = False
    cells: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As in a sentence: `424 ms`, `4.25 [3.0, 7.0]`."""
        return number_format.in_prose(self)

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    @property
    def half_width(self) -> float:
        """Half the interval, as a share of the value; 0 without one."""
        return (
            (self.high - self.low) / (2 * abs(self.value))
            if self.has_interval and self.value
            else 0.0
        )

    @property
    def bare(self) -> str:
        """Without its unit: `458 of 546 ms`."""
        return number_format.in_prose(self, with_unit=False)


Maybe = Quantity | None  # what was not measured is None, and so is what is made of it


def joined(*parts: Maybe) -> tuple[str, ...]:
    """The cells of all of them, each once, in their order."""
    return tuple(dict.fromkeys(cell for part in parts if part for cell in part.cells))


def over(a: Maybe, b: Maybe, unit: str = "1") -> Maybe:
    """a / b; the logarithms of independent intervals add in quadrature (propagation of
    uncertainty)."""
    if a is None or b is None or not b.value:
        return None
    logs = [
        math.log(each.high / each.low) / 2 for each in (a, b) if each.has_interval and each.low > 0
    ]
    value, width = a.value / b.value, math.exp(math.hypot(*logs))
    ends = (value / width, value * width) if logs else (None, None)
    return Quantity(value, unit, *ends, a.doubt or b.doubt, joined(a, b))


def minus(a: Maybe, b: Maybe) -> Maybe:
    """a − b, in a's unit, without an interval."""
    return (
        None if a is None or b is None else Quantity(a.value - b.value, a.unit, cells=joined(a, b))
    )


def plus(*parts: Maybe) -> Maybe:
    """The sum; missing if a part is, or if there is none."""
    if not parts or any(part is None for part in parts):
        return None
    return Quantity(sum(part.value for part in parts), parts[0].unit, cells=joined(*parts))


def scaled(a: Maybe, factor: float, unit: str = "") -> Maybe:
    """a × factor, interval and all, in a new unit if one is given."""
    if a is None:
        return None
    ends = (a.low * factor, a.high * factor) if a.has_interval else (None, None)
    return Quantity(a.value * factor, unit or a.unit, *ends, a.doubt, a.cells)


def share(part: Maybe, whole: Maybe) -> Maybe:
    """part / whole, as percent, without an interval."""
    return exact(over(part, whole, "share"))


def time_of(work: Maybe, rate: Maybe) -> Maybe:
    """Seconds that so many FLOP or bytes take at so many a second: every prediction of a time is
    one of these."""
    return exact(over(work, rate, "s"))


def gap(measured: Maybe, predicted: Maybe) -> Maybe:
    """How far the measured value is off the predicted one, of the predicted: +0.28 is 28 % more."""
    made = over(measured, predicted)
    return None if made is None else Quantity(made.value - 1, "gap", cells=made.cells)


def is_below(a: Maybe, b: Maybe, factor: float = 1.0) -> bool:
    """Whether a is known to be less than b × factor: what a claim of the prose rests on."""
    return a is not None and b is not None and a.value < factor * b.value


def count(value: float | None, *cells: str) -> Maybe:
    """A number of things."""
    return None if value is None else Quantity(float(value), "count", cells=cells)


def exact(quantity: Maybe) -> Maybe:
    """Without its interval."""
    return (
        None if quantity is None else Quantity(quantity.value, quantity.unit, cells=quantity.cells)
    )
