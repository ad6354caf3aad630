"""Intervals and verdicts against scipy's own tests, closed forms and simulations whose truth is
known."""

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats
from stepscope.results import statistics, verdicts

KEY = ["study", "series"]


def between(logs, study="study"):
    """Of (series, processes) logarithms; study: of all of them, or of each series."""
    of_series = {"study": study, "series": range(len(logs))}
    index = pd.MultiIndex.from_frame(pd.DataFrame(of_series)).repeat(logs.shape[1])
    return statistics.between_processes(pd.Series(logs.ravel(), index), KEY, ["study"])


def judge(logs, margin=0.02):
    return verdicts.judged(between(logs), np.full(len(logs), margin), np.zeros(len(logs)))


def test_two_series_of_one_spread_have_the_pooled_variance_of_scipys_t_test():
    logs = np.array(
        [[0.0, 0.02, 0.01], [0.5, 0.48, 0.52]]
    )  # variances 1e-4 and 4e-4: no more apart than chance allows
    got = between(logs)
    assert got["degrees"].tolist() == [4, 4]
    difference = got["centre"].diff().iloc[1] / np.sqrt((got["error"] ** 2).sum())
    assert difference == approx(stats.ttest_ind(logs[1], logs[0]).statistic)


def test_one_process_has_a_median_and_no_interval():
    got = statistics.interval(between(np.log([[0.5]]))).iloc[0]
    assert got["median"] == approx(0.5)
    assert np.isnan(got["low"])
    assert np.isnan(got["high"])


def test_processes_that_agree_exactly_have_an_interval_of_no_width():
    got = statistics.interval(between(np.log([[611.0] * 3, [10.0] * 3])))
    assert got["low"].tolist() == got["high"].tolist() == approx([611, 10])


def holding(found):
    """Which intervals of 95 % hold 0, the truth."""
    half = stats.t.ppf(0.975, found["degrees"]) * found["error"]
    return (found["centre"].abs() < half).to_numpy()


@pytest.mark.parametrize("spreads", [(0.01, 0.01), (0.003, 0.03), (0.001, 0.1)])
def test_intervals_hold_the_truth_where_series_spread_alike_and_where_they_do_not(spreads):
    """95 in 100 over all; those that spread most may lose a few to the others, the plain pooled
    variance loses 20."""
    draw = np.random.default_rng(5)
    spread = np.repeat(spreads, 1000)
    holds = holding(between(draw.normal(0, spread[:, None], (2000, 3))))
    assert 0.94 < holds.mean() < 0.97
    assert all(holds[spread == each].mean() > 0.9 for each in spreads)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_intervals_of_what_launches_limit_hold_the_truth_where_they_lend_to_each_other(share):
    """Launch-limited steps spread 25 times as much as those that the GPU limits. One prior for both
    leaves the former 87 to 91 in 100; one for each 94 or more."""
    draw = np.random.default_rng(8)
    limits = np.where(np.arange(4000) < 4000 * share, "launches", "gpu")
    spread = np.where(limits == "launches", 0.1, 0.004)
    logs = draw.normal(0, spread[:, None], (4000, 3))
    holds = holding(between(logs, limits))
    for limit in ("launches", "gpu"):
        assert holds[limits == limit].mean() >= 0.94


def test_moderated_variances_are_those_of_smyth_for_known_moments():
    """A scaled inverse chi-squared prior with 4 degrees of freedom about 1e-4 is found again from
    many variances."""
    draw = np.random.default_rng(7)
    truth = 1e-4 * 4 / draw.chisquare(4, 20_000)
    own = truth * draw.chisquare(2, 20_000) / 2
    variances, freedom = statistics.moderated(own, np.full(20_000, 2.0))
    assert freedom[0] == approx(6, rel=0.05)
    assert np.allclose(variances, (4 * 1e-4 + 2 * own) / 6, rtol=0.05)


def test_pairs_that_differ_by_the_margin_are_seldom_called_the_same():
    """A hundred pairs, each just at the margin: without control of the family five of them."""
    called = 0
    for seed in range(20):
        logs = np.random.default_rng(seed).normal(np.log(1.02), 0.01, (100, 3))
        called += (judge(logs)["verdict"] == "same").sum()
    assert called <= 20


def test_at_most_one_of_a_hundred_equal_pairs_is_called_different():
    for seed in range(20):
        logs = np.random.default_rng(seed).normal(0, 0.01, (100, 3))
        assert judge(logs)["verdict"].isin(["faster", "slower"]).sum() <= 1


@pytest.mark.parametrize("truth, word", [(1.05, "faster"), (1 / 1.05, "slower")])
def test_a_planted_difference_of_five_percent_is_found(truth, word):
    found = []
    for seed in range(20):
        logs = np.random.default_rng(seed).normal(0, 0.01, (60, 3))
        logs[:10] += np.log(truth)
        found.append((judge(logs)["verdict"][:10] == word).mean())
    assert min(found) >= 0.9


@pytest.mark.parametrize(
    "ratio, error, word",
    [
        (1.0, 0.002, "same"),
        (1.05, 0.002, "faster"),
        (0.9, 0.002, "slower"),
        (1.02, 0.004, "unclear"),
        (1.1, 0.2, "unclear"),
    ],
)
def test_words(ratio, error, word):
    found = pd.DataFrame({"centre": [np.log(ratio)], "error": [error], "degrees": [100.0]})
    got = verdicts.judged(found, np.array([0.02]), np.array(["all"])).iloc[0]
    assert got["verdict"] == word
    assert got["ratio"] == approx(ratio)


def test_without_an_interval_nothing_is_said():
    got = judge(np.log([[1.5]])).iloc[0]
    assert got["verdict"] == "unclear"
    assert np.isnan(got["p"])


def test_discoveries_are_controlled_within_each_family():
    """The p-values of a family are those of Benjamini and Hochberg: the smallest of four times
    four."""
    found = pd.DataFrame(
        {"centre": [0.05, 0.0, 0.0, 0.0, 0.05], "error": [0.01] * 5, "degrees": [1e6] * 5}
    )
    got = verdicts.judged(found, np.full(5, 1e-9), np.array([*"aaaab"]))
    alone = 2 * stats.norm.sf(5)
    assert got["p"].tolist() == approx([4 * alone, 1, 1, 1, alone], rel=1e-3)
