"""How a quantity grows with another: a power law through the points, with the interval of its exponent."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from stepscope.confidence import quantile

LEAST_POINTS = 4  # through fewer no line is drawn: of three a single one would bend it


@dataclass(frozen=True)
class Growth:
    """The exponent of a power law, and its 95 % interval, which tells how far the points lie off the law."""

    exponent: float
    low: float
    high: float
    points: int


def power_law(points: Iterable[tuple[float, float]]) -> Growth | None:
    """b of y = a x^b through (x, y), both above 0; None with fewer than LEAST_POINTS different x.

    Least squares on the logarithms. The interval is Student's, of n - 2 degrees of freedom (Draper and Smith 1998,
    Applied Regression Analysis, section 1.4).
    """
    logarithms = [(math.log(x), math.log(y)) for x, y in points]
    if len({x for x, _ in logarithms}) < LEAST_POINTS:
        return None
    own = [list(axis) for axis in zip(*logarithms, strict=True)]
    slope, intercept = statistics.linear_regression(*own)
    middle = statistics.fmean(own[0])
    squares = math.fsum((y - slope * x - intercept) ** 2 for x, y in logarithms)
    spread = math.fsum((x - middle) ** 2 for x in own[0])
    free = len(logarithms) - 2
    half = quantile(free) * math.sqrt(squares / free / spread)
    return Growth(slope, slope - half, slope + half, len(logarithms))
