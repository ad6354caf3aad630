"""Two measurements that differ in one axis: which belong together, how much faster, and what may be said of that.

Whatever the report calls faster, slower or the same as something else of the same point is decided by judged(): the
unit is the process, the spread is that of the series' class (stepscope.confidence), and no difference counts that is
not larger than what unchanged cells of the same run differ by.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stepscope.confidence import FALSE_DISCOVERIES, Difference, Spread, difference, discoveries
from stepscope.report.kit.formatting import known, median_beside_interval, significant
from stepscope.tables.columns import GPU, LAUNCHES, PROCESSOR

FASTER, SLOWER, SAME, UNCLEAR, NOT_COMPARABLE = "faster", "slower", "same", "unclear", "not comparable"
LEAST_MARGIN = math.log(1.02)  # a smaller difference counts as none, however sure it is
MOST_SAME = math.log(1.25)  # of the margin; where unchanged cells differ by more, nothing can be called the same
HOSTS_AGREE = 0.10  # by how much the fixed loops of two hosts may differ for launches to be compared
# Why there is no verdict, where it is not that the difference is too small to be told.
OTHER_HOST, SLOW_HOST, OTHER_CLOCK, SINGLE = "other host", "slow host", "other clock", "single process"
ALARM = "the control fired"


@dataclass(frozen=True, slots=True)
class Timed:
    """The times of a series: the geometric mean of its processes' medians and its 95 % interval, all in one unit.

    low, high: None where a single process measured it. spread: of a process in the series' class. limited_by: that
    class, as in the tables. clock_mhz: of the SMs. host: milliseconds of the fixed loops, (Python, launches).
    slowdown: that of the first of these over the quickest in the table. slow_host: whether it is marked as slow.
    run: which results it is of, where two of them are compared.
    """

    median: float
    low: float | None = None
    high: float | None = None
    noisy: bool = False
    processes: int = 1
    spread: Spread | None = None
    hardware: str = ""
    limited_by: str | None = None
    clock_mhz: float | None = None
    host: tuple[float, ...] = ()
    slowdown: float = 1.0
    slow_host: bool = False
    run: str = ""

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
    ends = ("", "_degrees", "_cells", "_cells_degrees")
    deviation, degrees, *between = (row.get(f"{prefix}spread{end}") for end in ends)
    cells, cells_degrees = (value if known(value) else 0 for value in between)
    processes, clock = row.get(f"{prefix}processes"), row.get("sm_clock_median_mhz")
    limited_by = row.get(f"{prefix}limited_by")
    return Timed(
        median,
        low,
        high,
        bool(row.get(f"{prefix}noisy")),
        int(processes) if known(processes) else 1,
        Spread(deviation, int(degrees), cells, int(cells_degrees)) if known(deviation) and known(degrees) else None,
        row.get("hardware") or "",
        limited_by if isinstance(limited_by, str) else None,  # missing text may be NaN, which equals nothing
        clock if known(clock) else None,
        tuple(row[name] for name in ("host_python_ms", "host_launches_ms") if known(row.get(name))),
        slowdown if known(slowdown := row.get("host_slowdown")) else 1.0,
        known(row.get("slow_host")) and bool(row["slow_host"]),
    )


@dataclass(frozen=True)
class Floors:
    """What unchanged cells of the run differ by, as differences of logarithms: (hardware, what limits them) → floor."""

    by_class: Mapping[tuple[str, str | None], float] = field(default_factory=dict)

    def of(self, series: Timed) -> float:
        """That of a series' class; of a class without a control the largest of its machine, and 0 without any."""
        own = self.by_class.get((series.hardware, series.limited_by))
        others = [floor for (hardware, _), floor in self.by_class.items() if hardware == series.hardware]
        return max(others, default=0.0) if own is None else own

    def margin(self, *series: Timed) -> float:
        """The difference of logarithms up to which these count as the same."""
        return max([LEAST_MARGIN, *map(self.of, series)])

    def larger(self, other: "Floors") -> "Floors":
        """The larger floor of each class."""
        classes = {*self.by_class, *other.by_class}
        both = self.by_class, other.by_class
        return Floors({each: max(by_class.get(each, 0.0) for by_class in both) for each in classes})


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many times as fast one series is as a reference.

    low, high: the ends of the ratio's 95 % interval; None where a single process measured one of both. verdict:
    FASTER, SLOWER, SAME, UNCLEAR or NOT_COMPARABLE. margin: the ratio up to which they count as the same, else that
    beyond which they would be different. times: of the reference and of the series, ms. why: a word on what keeps a
    verdict back, beside a difference that is too small to be told; else empty.
    """

    ratio: float
    low: float | None
    high: float | None
    verdict: str
    margin: float
    times: tuple[float, float]
    why: str = ""

    @property
    def has_interval(self) -> bool:
        """Whether several processes measured both; else there is no verdict."""
        return self.low is not None and self.high is not None

    @property
    def is_different(self) -> bool:
        """Whether the one is called faster or slower than the other."""
        return self.verdict in (FASTER, SLOWER)

    @property
    def is_beyond_margin(self) -> bool:
        """Whether the ratio itself is farther from 1 than what unchanged cells differ by."""
        return abs(math.log(self.ratio)) > math.log(self.margin)


def compare(own: Timed | None, reference: Timed | None, floors: Floors) -> Comparison | None:
    """`own` beside `reference`, the only two that are compared; None unless both have a time."""
    return judged([(own, reference)], floors)[0]


def judged(both: Sequence[tuple[Timed | None, Timed | None]], floors: Floors) -> list[Comparison | None]:
    """Each series beside its reference; None for a pair unless both have a time.

    The pairs are one family: at most 5 % of what is called faster or slower among them is expected to be neither.
    """
    found = [_difference(*pair) for pair in both]
    margins = [floors.margin(*pair) if None not in pair else 0.0 for pair in both]
    needed = [max(margin, by_hosts(pair)) for margin, pair in zip(margins, both, strict=True)]
    tested = [
        i for i, each in enumerate(found) if each and not are_other_hosts(*both[i]) and not any(map(was_slow, both[i]))
    ]
    # Within the margin p is at least one half, which no rank would let pass: it needs no tail of a distribution.
    p_values = [found[i].p_beyond(needed[i]) if abs(found[i].logarithm) > needed[i] else 1.0 for i in tested]
    real = dict(zip(tested, discoveries(p_values), strict=True))
    return [
        _comparison(*pair, found[i], (margins[i], needed[i]), real.get(i, False)) if None not in pair else None
        for i, pair in enumerate(both)
    ]


def _difference(own: Timed | None, reference: Timed | None) -> Difference | None:
    """ln(reference / own): above 0 where `own` is faster."""
    if own is None or reference is None:
        return None
    over, under = ((each.median, each.processes, each.spread) for each in (reference, own))
    is_one_class = (own.hardware, own.limited_by, own.spread) == (
        reference.hardware,
        reference.limited_by,
        reference.spread,
    )
    return difference(over, under, is_one_class)


def by_hosts(series: Iterable[Timed | None]) -> float:
    """The difference of logarithms that slow hosts may explain: what launches limit is as slow as its host was then,
    and of two runs what a processor limits, too."""
    there = [each for each in series if each]
    slow = max((math.log(each.slowdown) for each in there if each.limited_by == LAUNCHES), default=0.0)
    if len({each.run for each in there}) < 2 or not _need_the_host(there) or not all(each.host for each in there):
        return slow
    loops = [each.host[0] for each in there]
    return max(slow, math.log(max(loops) / min(loops)))


def _need_the_host(series: Iterable[Timed]) -> bool:
    """Whether the host's speed is a part of the time of any of them."""
    return any(each.limited_by in (LAUNCHES, PROCESSOR) for each in series)


def _comparison(
    own: Timed, reference: Timed, found: Difference | None, margins: tuple[float, float], is_real: bool
) -> Comparison:
    """margins: up to which both are the same, and beyond which they are different."""
    low, high = found.ends if found else (None, None)
    same, margin = margins
    why = ""
    if are_other_hosts(own, reference):
        word, why = NOT_COMPARABLE, OTHER_HOST
    elif was_slow(own) or was_slow(reference):
        word, why = UNCLEAR, SLOW_HOST
    elif is_real and _holds_in_cycles(own, reference, found, margin):
        word = FASTER if found.logarithm > 0 else SLOWER
    elif _are_other_clocks(own, reference, margin):
        word, why = NOT_COMPARABLE, OTHER_CLOCK
    elif found and not is_real and same <= MOST_SAME and -same <= low and high <= same:
        word, margin = SAME, same
    else:
        word, why = UNCLEAR, OTHER_CLOCK if is_real else "" if found else SINGLE
    ends = (math.exp(low), math.exp(high)) if found else (None, None)
    return Comparison(reference.median / own.median, *ends, word, math.exp(margin), (reference.median, own.median), why)


def downgraded(found: Comparison) -> Comparison:
    """What may be said where unchanged cells of a run were found to differ: nothing."""
    return found if found.verdict == NOT_COMPARABLE else replace(found, verdict=UNCLEAR, why=ALARM)


def _holds_in_cycles(own: Timed, reference: Timed, found: Difference, margin: float) -> bool:
    """Whether a difference of what one GPU limits is one of its work too, and not of its clock alone."""
    clocks = clock_ratio(own, reference)
    if clocks is None:
        return True
    cycles = Difference(found.logarithm - math.log(clocks), found.error, found.degrees)
    return cycles.logarithm * found.logarithm > 0 and cycles.p_beyond(margin) <= FALSE_DISCOVERIES


def _are_other_clocks(own: Timed, reference: Timed, margin: float) -> bool:
    """Whether a GPU ran at clocks in two runs that differ by more than what counts as a difference."""
    clocks = clock_ratio(own, reference)
    return own.run != reference.run and clocks is not None and abs(math.log(clocks)) > margin


def clock_ratio(own: Timed, reference: Timed) -> float | None:
    """The SM clock of a series over that of its reference; None unless one type of GPU limits both and both are known.

    A ratio of times, multiplied by it, is one of cycles.
    """
    if own.hardware != reference.hardware or {own.limited_by, reference.limited_by} != {GPU}:
        return None
    return own.clock_mhz / reference.clock_mhz if own.clock_mhz and reference.clock_mhz else None


def was_slow(series: Timed) -> bool:
    """Whether a processor limits a series, and was slow when it was measured: a loop of plain Python does not tell by
    how much its other work was."""
    return series.slow_host and series.limited_by == PROCESSOR


def are_other_hosts(own: Timed, reference: Timed) -> bool:
    """Whether launches fill the time of one of them, and their machines' hosts are not known to be equally fast.

    Of two runs on one type of machine the loop of Python alone tells it, and also where a processor limits: how long
    launches take may be what has changed.
    """
    is_one_type = own.hardware == reference.hardware
    if is_one_type and (own.run == reference.run or not _need_the_host((own, reference))):
        return False
    if not is_one_type and LAUNCHES not in (own.limited_by, reference.limited_by):
        return False
    if not own.host or len(own.host) != len(reference.host):
        return True
    both = list(zip(own.host, reference.host, strict=True))[: 1 if is_one_type else None]
    return any(abs(math.log(a / b)) > math.log1p(HOSTS_AGREE) for a, b in both)


def ratio_text(ratio: float) -> str:
    """Two decimals, or three digits where those would be too few or too many, or would read as no difference."""
    if not 0.1 <= ratio < 100:
        return significant(ratio, 3 if ratio > 1 else 2)
    return f"{ratio:.2f}" if f"{ratio:.2f}" != "1.00" else f"{ratio:.3f}"


def interval_text(found: Comparison) -> str:
    """`[1.50, 1.66]`: the interval of the ratio; empty without one."""
    return median_beside_interval(found.ratio, found.low, found.high)[1]


def ratio_and_interval(found: Comparison) -> str:
    """`1.58 [1.50, 1.66]`, or the ratio alone."""
    if not found.has_interval:
        return ratio_text(found.ratio)
    return " ".join(median_beside_interval(found.ratio, found.low, found.high))


def ratio_range(ratios: Iterable[float]) -> str:
    """`1.20 to 3.41`, or one number where both are the same."""
    ratios = list(ratios)
    low, high = ratio_text(min(ratios)), ratio_text(max(ratios))
    return low if low == high else f"{low} to {high}"


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
