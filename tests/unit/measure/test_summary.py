"""Statistics against exhaustive enumeration, numpy and the standard library."""

import itertools
import math
import random
import statistics

import numpy as np
import pytest
from stepscope.measure.summary import is_narrow, median_interval, of_processes, summarise

TAIL = 0.025  # on each side of a 95 % interval


def interval_by_enumeration(samples):
    """Percentile interval from the medians of all n^n resamples."""
    medians = sorted(statistics.median(resample) for resample in itertools.product(samples, repeat=len(samples)))
    beyond = math.floor(TAIL * len(medians))  # as many medians lie outside the interval on each side
    return medians[beyond], medians[-1 - beyond]


@pytest.mark.parametrize(
    "samples",
    [
        *[random.Random(n).sample(range(100), n) for n in range(1, 7)],
        *[[5.0] * n for n in range(1, 6)],
        [1, 1, 2],
        [1, 2, 2, 3],
        [4, 1, 1, 4],
        [1, 1, 1, 9, 9],
        [3, 3, 1, 2, 3, 1],
        [-2.5, 0.0, 1e-9, 1e9],
    ],
    ids=str,
)
def test_the_interval_is_that_of_all_resamples(samples):
    assert median_interval(samples) == interval_by_enumeration(samples)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 10, 11, 20, 60])
def test_the_interval_has_no_preferred_side_and_no_preferred_order(n):
    chance = random.Random(n)
    samples = [chance.gauss(0, 1) for _ in range(n)]
    low, high = median_interval(samples)
    assert min(samples) <= low <= statistics.median(samples) <= high <= max(samples)
    assert median_interval([-x for x in samples]) == (-high, -low)
    chance.shuffle(samples)
    assert median_interval(samples) == (low, high)


@pytest.mark.parametrize("n", [10, 11, 40, 60])
def test_the_interval_agrees_with_numpys_resampling(n):
    chance = np.random.default_rng(n)
    samples = chance.lognormal(size=n)
    medians = np.median(chance.choice(samples, size=(100_000, n)), axis=1)
    low, high = median_interval(list(samples))
    # In ranks, not in values: the share of medians below each end must be the tail, up to chance and ties.
    for below, up_to in (
        ((medians < low).mean(), (medians <= low).mean()),
        ((medians > high).mean(), (medians >= high).mean()),
    ):
        assert below - 0.002 <= TAIL <= up_to + 0.002


def test_no_samples_have_no_interval():
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])


@pytest.mark.parametrize("n", [2, 3, 4, 5, 10, 37])
def test_a_summary_is_what_numpy_computes(n):
    samples = np.random.default_rng(n).lognormal(sigma=2, size=n)
    first, third = np.quantile(samples, [0.25, 0.75])
    reach = 1.5 * (third - first)
    found = summarise(list(samples))
    assert found["count"] == n
    for key, expected in {
        "mean": samples.mean(),
        "std": samples.std(ddof=1),
        "median": np.median(samples),
        "iqr": third - first,
    }.items():
        assert found[key] == pytest.approx(expected, rel=1e-12), key
    assert found["outliers"] == ((samples < first - reach) | (samples > third + reach)).sum()


def test_outliers_are_counted_beyond_tukeys_fences():
    # Quartiles 2 and 4, so that the fences are at -1 and 7, and values on them lie within.
    assert summarise([-1, 2, 2, 3, 3, 4, 4, 4, 7])["outliers"] == 0
    assert summarise([-1.01, 2, 2, 3, 3, 4, 4, 4, 7.01])["outliers"] == 2


def test_a_single_sample():
    expected = {"count": 1, "mean": 3.0, "std": None, "median": 3.0, "iqr": 0.0, "outliers": 0}
    assert summarise([3.0]) == expected


def sample(process, seconds, launch=None, warmup=False):
    return {"process": process, "seconds": seconds, "launch_seconds": launch, "warmup": warmup}


def test_every_process_is_summarised_by_itself_and_without_its_warm_up():
    rows = [sample(1, 9.0, 9.0, warmup=True), sample(1, 2.0, 1.0), sample(2, 5.0), sample(1, 4.0, 3.0)]
    first, second = of_processes(rows)
    assert (first["count"], first["median"], first["launch"]) == (2, 3.0, 2.0)
    assert (second["count"], second["median"], second["launch"]) == (1, 5.0, None)


def test_narrow_is_within_one_percent_on_each_side():
    assert is_narrow([100.0, 100.0])
    # Of two samples, the interval is from one to the other.
    assert is_narrow([99.0, 101.0])
    assert not is_narrow([98.9, 101.1])
    assert is_narrow([98.9, 101.1], share=0.02)
