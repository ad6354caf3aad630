"""Statistics of one series of samples, and the rule that says when there are enough of them. Standard library only."""

import random
import statistics
import time
from collections.abc import Sequence

CONFIDENCE = 0.95
RESAMPLES = 1000
NARROW = 0.01  # half the interval over the median, at which a series may end
CHECK_EVERY = 5  # samples between two looks at the interval, which takes some milliseconds


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """Bootstrap confidence interval of the median, by percentiles (Efron and Tibshirani 1993, chapter 13).

    Resampled with a fixed seed: the same samples give the same interval. Raises ValueError without samples.
    """
    if not samples:
        raise ValueError("no samples")
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(samples, k=len(samples))) for _ in range(RESAMPLES))
    tail = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    return medians[tail], medians[-1 - tail]


def summarise(samples: Sequence[float]) -> dict:
    """Count, mean, sample standard deviation, median, interquartile range, interval of the median, outliers.

    In the samples' unit. Outliers lie more than 1.5 interquartile ranges outside the quartiles (Tukey 1977); they are
    counted, not dropped. The standard deviation of a single sample is None.
    """
    low, high = median_interval(samples)
    first, _, third = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else [samples[0]] * 3
    reach = 1.5 * (third - first)
    return {
        "count": len(samples),
        "mean": statistics.fmean(samples),
        "std": statistics.stdev(samples) if len(samples) > 1 else None,
        "median": statistics.median(samples),
        "iqr": third - first,
        "ci_low": low,
        "ci_high": high,
        "outliers": sum(not first - reach <= sample <= third + reach for sample in samples),
    }


class StoppingRule:
    """A series goes on until each phase's interval is narrow, within a least and a most number and a time."""

    def __init__(self, least: int, most: int, seconds: float, clock=time.perf_counter):
        self._least, self._most, self._seconds, self._clock = least, max(least, most), seconds, clock
        self._start = clock()

    def enough(self, series: Sequence[Sequence[float]]) -> bool:
        """Whether these series, one a phase and all of one length, may end."""
        count = len(series[0])
        if count < self._least:
            return False
        if count >= self._most or self._clock() - self._start >= self._seconds:
            return True
        return (count - self._least) % CHECK_EVERY == 0 and all(is_narrow(samples) for samples in series)


def is_narrow(samples: Sequence[float], share: float = NARROW) -> bool:
    """Whether the median's interval lies within ± share of the median."""
    low, high = median_interval(samples)
    return (high - low) / 2 <= share * statistics.median(samples)
