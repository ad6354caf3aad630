"""Statistics of one series of samples. Standard library only."""

import functools
import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

CONFIDENCE = 0.95
STATUSES = ("ok", "unsupported", "oom")  # from the best to the worst
NARROW = 0.01  # half the interval over the median, at which a series may end


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Bootstrap confidence interval of the median, by percentiles (Efron and Tibshirani 1993, chapter 13).

    Not resampled: the distribution of the median over all resamples is computed (Efron 1979, section 3), so the same
    samples always give the same interval. Raises ValueError without samples.
    """
    if not samples:
        raise ValueError("no samples")
    ranked = sorted(samples)
    medians = sorted(((ranked[i] + ranked[j]) / 2, share) for i, j, share in _median_shares(len(ranked)))
    return _percentile(medians), _percentile(reversed(medians))


def _percentile(medians: Iterable[tuple[float, float]]) -> float:
    """The first value at which the shares, added up, pass the tail outside the interval."""
    values, shares = zip(*medians, strict=True)
    passed = itertools.accumulate(shares)
    return next(value for value, share in zip(values, passed, strict=True) if share > (1 - CONFIDENCE) / 2)


@functools.cache
def _median_shares(n: int) -> list[tuple[int, int, float]]:
    """Of all resamples of n ranked samples, the share whose two middle values have the ranks i and j (from 0).

    For an odd n there is one middle value, and i = j. A rank up to k is drawn with the probability k / n.
    """
    half = (n + 1) // 2

    def at_most(k: int) -> float:  # P(the half-th smallest of n draws has a rank up to k)
        return sum(math.comb(n, r) * (k / n) ** r * (1 - k / n) ** (n - r) for r in range(half, n + 1))

    of_rank = [at_most(k + 1) - at_most(k) for k in range(n)]
    if n % 2:
        return [(k, k, share) for k, share in enumerate(of_rank)]
    # Of 2 m draws, m have their largest at rank i and the other m their smallest at rank j.
    largest = [((k + 1) / n) ** half - (k / n) ** half for k in range(n)]
    ways = math.comb(n, half)
    shares = [(i, j, ways * largest[i] * largest[n - 1 - j]) for i in range(n) for j in range(i + 1, n)]
    apart = [math.fsum(share for i, _, share in shares if i == k) for k in range(n)]
    return [(k, k, of_rank[k] - apart[k]) for k in range(n)] + shares


def summarise(samples: Sequence[float]) -> dict:
    """Count, mean, sample standard deviation, median, interquartile range, outliers: of the samples of one process.

    In the samples' unit. No interval: what holds within a process says nothing of the next (stepscope.confidence).
    Outliers lie more than 1.5 interquartile ranges outside the quartiles (Tukey 1977); they are counted, not dropped.
    The standard deviation of a single sample is None.
    """
    first, _, third = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else [samples[0]] * 3
    reach = 1.5 * (third - first)
    return {
        "count": len(samples),
        "mean": statistics.fmean(samples),
        "std": statistics.stdev(samples) if len(samples) > 1 else None,
        "median": statistics.median(samples),
        "iqr": third - first,
        "outliers": sum(not first - reach <= sample <= third + reach for sample in samples),
    }


def of_processes(rows: Iterable[Mapping]) -> list[dict]:
    """summarise() of the measured samples of each process, rows of one series, with the median until launched.

    In seconds; `launch` is None where the device does not wait for launches.
    """
    found: dict[int, list[Mapping]] = {}
    for row in rows:
        if not row["warmup"]:
            found.setdefault(row["process"], []).append(row)
    summaries = []
    for own in found.values():
        launches = [row["launch_seconds"] for row in own if row.get("launch_seconds") is not None]
        launch = {"launch": statistics.median(launches) if launches else None}
        summaries.append(summarise([row["seconds"] for row in own]) | launch)
    return summaries


def is_narrow(samples: Sequence[float], share: float = NARROW) -> bool:
    """Whether the median's interval lies within ± share of the median."""
    low, high = median_interval(samples)
    return (high - low) / 2 <= share * statistics.median(samples)
