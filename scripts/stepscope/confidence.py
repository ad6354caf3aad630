"""What may be said of times that a second run takes anew: intervals and p-values between processes.

The unit is the process: its value is the median of its steps, and steps are never pooled (Kalibera and Jones 2013,
"Rigorous benchmarking in reasonable time", sections 5 and 6: repeat at the level that varies most). All of it works on
natural logarithms, since times differ by factors. The two or three processes of one cell cannot tell their own spread,
so it is pooled over the cells of a class: those of one machine that the same thing limits. Cells that were measured at
another time may differ by more than their processes do; what they differ by is told by cells that were measured twice.
"""

import functools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
FALSE_DISCOVERIES = 0.05  # the share of the differences called real that may be none


_AS_GOOD_AS_ALL = 1e9  # degrees of freedom; of more the quantile is that of these, to nine digits
UNSTEADY = 0.001  # how unlikely a series' own spread has to be in its class for it to be of its own


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviation of the logarithm of a process's value, and its degrees of freedom.

    cells: that of the logarithm of a cell, beyond what its processes explain; 0 where nothing tells of it.
    cells_degrees: of that; 0 where it is known and not estimated.
    """

    deviation: float
    degrees: int
    cells: float = 0.0
    cells_degrees: int = 0

    def error(self, processes: int) -> float:
        """Standard error of the logarithm of a cell's value (the nested random effects of Kalibera and Jones)."""
        return math.hypot(self.deviation / math.sqrt(processes), self.cells)

    def parts(self, *processes: int) -> list[tuple[float, int]]:
        """(variance, degrees of freedom) of what the error of a sum of cells with so many processes is made of."""
        within = self.deviation**2 * math.fsum(1 / each for each in processes)
        return [(within, self.degrees), (len(processes) * self.cells**2, self.cells_degrees)]


def freedom(parts: Sequence[tuple[float, int]]) -> float:
    """Degrees of freedom of a sum of estimated variances (Satterthwaite 1946); a variance that is known has 0."""
    lost = math.fsum(variance**2 / degrees for variance, degrees in parts if degrees)
    if lost == 0:
        return min((degrees for _, degrees in parts if degrees), default=1)
    return math.fsum(variance for variance, _ in parts) ** 2 / lost


def centre(values: Sequence[float]) -> float:
    """The geometric mean of what the processes gave; of one process what it gave. Raises ValueError without values."""
    return values[0] if len(values) == 1 else math.exp(statistics.fmean(map(math.log, values)))


def pooled(cells: Iterable[Sequence[float]]) -> Spread | None:
    """The spread within cells, each given as the values of its processes; None where no cell has two.

    The pooled variance of one-way analysis of variance: squares within, over their degrees of freedom.
    """
    squares, degrees = 0.0, 0
    for values in cells:
        if len(values) > 1:
            logarithms = [math.log(value) for value in values]
            squares += _squares(logarithms)
            degrees += len(logarithms) - 1
    return Spread(math.sqrt(squares / degrees), degrees) if degrees else None


def _squares(values: Sequence[float]) -> float:
    """The sum of squares around the mean."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)


def unsteady(cells: Sequence[Sequence[float]]) -> set[int]:
    """Places of the cells whose processes differ by more than chance allows in a class of the spread that the others
    have: by an F test of the variances, the most unlikely first, until none is left."""
    spreads = {place: own for place, values in enumerate(cells) if (own := pooled([values]))}
    # At equal degrees of freedom the largest spread is the most unlikely: only it needs to be tested, which matters
    # with the thousands of series of a large grid.
    ranked: dict[int, list[int]] = {}
    for place in sorted(spreads, key=lambda place: spreads[place].deviation):
        ranked.setdefault(spreads[place].degrees, []).append(place)
    found: set[int] = set()
    while True:
        widest = [places[-1] for places in ranked.values() if places]
        likely = {place: _variance_tail(spreads[place], _others(spreads, found | {place})) for place in widest}
        worst = min(likely, key=likely.get, default=None)
        if worst is None or likely[worst] >= UNSTEADY:
            return found
        found.add(worst)
        ranked[spreads[worst].degrees].pop()


def is_of_the_clock(values: Sequence[float], error: float) -> bool:
    """Whether the processes differ by no more than the clock's error may make them, of this standard deviation in the
    values' unit: by the chi-squared distribution of their squares."""
    from scipy import special

    return bool(special.chdtrc(len(values) - 1, _squares(values) / error**2) >= UNSTEADY)


def _others(spreads: Mapping[int, Spread], left_out: set[int]) -> Spread | None:
    """The spread of all cells but some; None where no other is left."""
    rest = [own for place, own in spreads.items() if place not in left_out]
    if not rest:
        return None
    degrees = sum(own.degrees for own in rest)
    return Spread(math.sqrt(math.fsum(own.deviation**2 * own.degrees for own in rest) / degrees), degrees)


def _variance_tail(own: Spread, others: Spread | None) -> float:
    """The share of Fisher's distribution above the ratio of two variances; 1 without others."""
    from scipy import special

    if others is None:
        return 1.0
    if others.deviation == 0:
        return 0.0 if own.deviation > 0 else 1.0
    return float(special.fdtrc(own.degrees, others.degrees, (own.deviation / others.deviation) ** 2))


def between_cells(twice: Iterable[Sequence[Sequence[float]]], spread: Spread) -> float:
    """The standard deviation of a cell's logarithm beyond that of its processes: 0 where these explain all of it.

    twice: of each series that was measured at several times, what the processes of each time gave. The moment estimator
    of one-way random effects: the variance of the cells' means less what processes contribute to it.
    """
    squares, explained, degrees = 0.0, 0.0, 0
    for times in twice:
        if len(times) > 1:
            squares += _squares([math.log(centre(values)) for values in times])
            explained += statistics.fmean(spread.deviation**2 / len(values) for values in times) * (len(times) - 1)
            degrees += len(times) - 1
    return math.sqrt(max(0.0, squares - explained) / degrees) if degrees else 0.0


def interval(middle: float, processes: int, spread: Spread | None) -> tuple[float, float] | None:
    """95 % confidence interval of a cell's centre, in its unit; None without a spread, or of a single process."""
    if spread is None or processes < 2:
        return None
    half = quantile(freedom(spread.parts(processes))) * spread.error(processes)
    return middle * math.exp(-half), middle * math.exp(half)


@dataclass(frozen=True, slots=True)
class Difference:
    """The logarithm of the ratio of two centres, with its standard error and degrees of freedom."""

    logarithm: float
    error: float
    degrees: float

    @property
    def ends(self) -> tuple[float, float]:
        """95 % confidence interval of the logarithm."""
        half = quantile(self.degrees) * self.error
        return self.logarithm - half, self.logarithm + half

    def p_beyond(self, margin: float) -> float:
        """How likely a difference at least as large would be if the true one were no larger than ± margin."""
        excess = abs(self.logarithm) - margin
        if self.error == 0:
            return 0.0 if excess > 0 else 1.0
        return upper_tail(excess / self.error, self.degrees)


def difference(
    over: tuple[float, int, Spread | None], under: tuple[float, int, Spread | None], is_one_class: bool
) -> Difference | None:
    """ln(over / under), each as (centre, processes, spread of its class).

    None where one was measured by a single process. In one class the spread is the same number for both; else each
    variance is an estimate of its own, as Welch (1947) has it.
    """
    if any(spread is None or processes < 2 for _, processes, spread in (over, under)):
        return None
    if is_one_class:
        parts = over[2].parts(over[1], under[1])
    else:
        parts = [part for _, processes, spread in (over, under) for part in spread.parts(processes)]
    error = math.sqrt(math.fsum(variance for variance, _ in parts))
    return Difference(math.log(over[0] / under[0]), error, freedom(parts))


def discoveries(p_values: Sequence[float], rate: float = FALSE_DISCOVERIES) -> list[bool]:
    """Which hold, if at most the share `rate` of these may be wrong (Benjamini and Hochberg 1995, section 3)."""
    from scipy import stats

    return [bool(p <= rate) for p in stats.false_discovery_control(p_values)] if len(p_values) else []


@functools.cache
def quantile(degrees: float, confidence: float = CONFIDENCE) -> float:
    """Student's t: ± it holds the share `confidence` of the distribution."""
    from scipy import special  # only here: planning and measuring do without

    return float(special.stdtrit(min(degrees, _AS_GOOD_AS_ALL), (1 + confidence) / 2))


@functools.cache
def upper_tail(t: float, degrees: float) -> float:
    """The share of Student's distribution above t."""
    from scipy import special

    return float(special.stdtr(min(degrees, _AS_GOOD_AS_ALL), -t))
