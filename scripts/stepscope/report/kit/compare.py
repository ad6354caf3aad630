"""Two measurements that differ in one axis: which belong together, how much faster, and what may be said of that.

Whatever the report calls faster or slower than something else of the same point is decided by verdict().
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from stepscope.report.kit.formatting import known, significant

FASTER, SLOWER, UNCLEAR = "faster", "slower", "unclear"


@dataclass(frozen=True, slots=True)
class Timed:
    """The median of a series and the ends of its 95 % interval, all in one unit; the ends are None where not known."""

    median: float
    low: float | None = None
    high: float | None = None
    noisy: bool = False

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None


def timed(row: Mapping, prefix: str = "") -> Timed | None:
    """The series of a table's row whose columns begin with `prefix` (`step_`), in ms; None without a median."""
    median = row.get(f"{prefix}median_ms")
    if not (known(median) and median > 0):
        return None
    ends = [row.get(f"{prefix}ci_{end}_ms") for end in ("low", "high")]
    low, high = ends if all(map(known, ends)) and min(ends) > 0 else (None, None)
    return Timed(median, low, high, bool(row.get(f"{prefix}noisy")))


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many times as fast one series is as a reference.

    low, high: the least and the most that the two intervals allow. verdict: FASTER, SLOWER or UNCLEAR. by_repeats:
    whether what repeated runs of both differ by decided it. times: of the reference and of the series, ms.
    """

    ratio: float
    low: float
    high: float
    verdict: str
    by_repeats: bool
    times: tuple[float, float]


def compare(
    own: Timed | None, reference: Timed | None, spreads: tuple[float | None, float | None] = (None, None)
) -> Comparison | None:
    """`own` beside `reference`; None unless both have a time.

    spreads: the relative difference between repeated runs of each, None where it was not repeated. Unless both were,
    the intervals must be disjoint besides.
    """
    if own is None or reference is None:
        return None
    by_repeats = None not in spreads
    word = verdict(own, reference, math.fsum(filter(None, spreads)), disjoint=not by_repeats)
    (low, high), (before_low, before_high) = _ends(own), _ends(reference)
    times = (reference.median, own.median)
    return Comparison(reference.median / own.median, before_low / high, before_high / low, word, by_repeats, times)


def verdict(own: Timed | None, reference: Timed | None, spread: float = 0.0, *, disjoint: bool = True) -> str:
    """FASTER or SLOWER where `own` differs from `reference` by more than `spread` (a difference of logarithms).

    disjoint: the two 95 % intervals must not overlap either; without both intervals it is UNCLEAR.
    """
    if own is None or reference is None:
        return UNCLEAR
    if disjoint and overlap(own, reference):
        return UNCLEAR
    difference = math.log(reference.median / own.median)
    if abs(difference) <= spread:
        return UNCLEAR
    return FASTER if difference > 0 else SLOWER


def overlap(own: Timed, reference: Timed) -> bool:
    """Whether the two intervals have a value in common, or may have, since one of them is not known."""
    if not (own.has_interval and reference.has_interval):
        return True
    return own.low <= reference.high and reference.low <= own.high


def ratio_text(ratio: float) -> str:
    """Two decimals, or three digits where those would be too few or too many, or would read as no difference."""
    if not 0.1 <= ratio < 100:
        return significant(ratio, 3 if ratio > 1 else 2)
    return f"{ratio:.2f}" if f"{ratio:.2f}" != "1.00" else f"{ratio:.3f}"


def ratio_range(ratios: Iterable[float]) -> str:
    """`1.20 to 3.41`, or one number where both are the same."""
    ratios = list(ratios)
    low, high = ratio_text(min(ratios)), ratio_text(max(ratios))
    return low if low == high else f"{low} to {high}"


def _ends(series: Timed) -> tuple[float, float]:
    """The interval, or the median itself where there is none."""
    return (series.low, series.high) if series.has_interval else (series.median, series.median)


def pairs(
    rows: Iterable[dict], axis: str, reference: object, point: Callable[[dict], Hashable]
) -> Iterator[tuple[dict, dict]]:
    """(row, the reference's row) of the same point, for each row whose `axis` has another value than `reference`.

    point: what both must have in common. Of several reference rows at a point the last one counts.
    """
    rows = list(rows)
    references = {point(row): row for row in rows if row[axis] == reference}
    for row in rows:
        if row[axis] != reference and point(row) in references:
            yield row, references[point(row)]


def by_axis(rows: Iterable[dict], axis: str, point: Callable[[dict], Hashable]) -> list[dict[object, dict]]:
    """The rows of each point by the value of their `axis`, the points in the order of their first rows.

    Of several rows of a point with the same value the last one counts.
    """
    found: dict[Hashable, dict[object, dict]] = {}
    for row in rows:
        found.setdefault(point(row), {})[row[axis]] = row
    return list(found.values())


def by_fields(*names: str) -> Callable[[dict], tuple]:
    """A point that is given by these fields. A missing number equals itself, which NaN does not."""
    return lambda row: tuple(None if (value := row.get(name)) != value else value for name in names)
