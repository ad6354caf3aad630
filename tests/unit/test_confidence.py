"""Intervals and p-values between processes: printed tables, a published example, and coverage by simulation."""

import math
import random
import statistics

import pytest
from stepscope import confidence
from stepscope.confidence import Spread, centre, difference, discoveries, interval, pooled, quantile, upper_tail


# Two-sided 95 % points of Student's t, as printed in tables (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
@pytest.mark.parametrize(
    ("degrees", "printed"), [(1, 12.706), (2, 4.303), (5, 2.571), (10, 2.228), (30, 2.042), (100, 1.984)]
)
def test_quantiles_are_those_of_printed_tables(degrees, printed):
    assert quantile(degrees) == pytest.approx(printed, abs=5e-4)


@pytest.mark.parametrize("degrees", [1e12, 1e15, 1e17, 1e58])
def test_quantiles_of_ever_more_degrees_are_the_normal_ones(degrees):
    assert quantile(degrees) == pytest.approx(1.959964, abs=1e-6)


def test_a_series_of_which_the_clock_tells_nearly_all_has_an_interval():
    # Processes that agree to some parts in a million, and 4 % by the steps of the clock: 1e17 degrees of freedom.
    low, high = interval(0.005, 3, Spread(5.4e-6, 4, 0.0408))
    assert (low, high) == pytest.approx((0.005 * math.exp(-1.96 * 0.0408), 0.005 * math.exp(1.96 * 0.0408)), rel=1e-4)


def test_tails_in_closed_form():
    # One degree of freedom is Cauchy's distribution: 1/2 - atan(t) / pi; two: (1 - t / sqrt(2 + t^2)) / 2.
    assert upper_tail(1.0, 1) == pytest.approx(0.25)
    assert upper_tail(3.0, 2) == pytest.approx((1 - 3 / math.sqrt(11)) / 2)
    assert upper_tail(-3.0, 2) == pytest.approx((1 + 3 / math.sqrt(11)) / 2)


@pytest.mark.parametrize(("t", "normal"), [(0.0, 0.5), (2.0, 0.0227501319), (5.0, 2.86651572e-7), (-2.0, 0.9772498681)])
def test_tails_of_many_degrees_are_the_normal_ones(t, normal):
    assert upper_tail(t, 1e7) == pytest.approx(normal, rel=2e-5)


def test_the_centre_is_the_geometric_mean():
    assert centre([2.0, 8.0]) == pytest.approx(4.0)
    with pytest.raises(ValueError):
        centre([])


def test_the_pooled_spread_is_that_within_cells():
    # Logarithms 0 and 0.2: variance 0.02 of 1 degree; 1, 1.1 and 1.2: 0.01 of 2. Together 0.04 over 3.
    cells = [[1.0, math.exp(0.2)], [math.exp(1.0), math.exp(1.1), math.exp(1.2)], [5.0]]
    found = pooled(cells)
    assert (found.deviation, found.degrees) == (pytest.approx(math.sqrt(0.04 / 3)), 3)
    assert pooled([[1.0], [2.0]]) is None and pooled([]) is None


def test_an_interval_is_a_factor_either_way():
    low, high = interval(10.0, 4, Spread(0.02, 10))
    # 2.228 × 0.02 / 2
    assert (low, high) == pytest.approx((10 * math.exp(-0.02228), 10 * math.exp(0.02228)), rel=1e-5)
    assert interval(10.0, 1, Spread(0.02, 10)) is None and interval(10.0, 3, None) is None


def test_a_difference_of_one_class_keeps_its_degrees_of_freedom():
    spread = Spread(0.03, 12)
    found = difference((20.0, 3, spread), (10.0, 3, spread), is_one_class=True)
    assert (found.logarithm, found.error) == (pytest.approx(math.log(2)), pytest.approx(0.03 * math.sqrt(2 / 3)))
    assert found.degrees == 12
    assert difference((20.0, 1, spread), (10.0, 3, spread), is_one_class=True) is None


def test_a_difference_of_two_classes_has_welchs_degrees_of_freedom():
    found = difference((1.0, 2, Spread(0.2, 4)), (1.0, 2, Spread(0.1, 9)), is_one_class=False)
    # Variances 0.02 and 0.005: 0.025^2 / (0.02^2 / 4 + 0.005^2 / 9).
    assert found.degrees == pytest.approx(0.025**2 / (0.0004 / 4 + 0.000025 / 9))


def test_how_likely_a_difference_is_beyond_a_margin():
    # 0.5 less a margin of 0.2 is 3 standard errors: the tail of two degrees of freedom beyond 3.
    found = difference((math.exp(0.5), 2, Spread(0.1, 2)), (1.0, 2, Spread(0.1, 2)), is_one_class=True)
    assert found.error == pytest.approx(0.1)
    assert found.p_beyond(0.2) == pytest.approx((1 - 3 / math.sqrt(11)) / 2)
    exact = difference((2.0, 2, Spread(0.0, 2)), (1.0, 2, Spread(0.0, 2)), is_one_class=True)
    assert (exact.p_beyond(0.5), exact.p_beyond(0.7)) == (0.0, 1.0)  # ln 2 is 0.693


# Benjamini and Hochberg 1995, section 3.2: thrombolysis, 15 hypotheses; Bonferroni rejects three, theirs four.
PUBLISHED = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
             0.7590, 1.0000]  # fmt: skip


def test_discoveries_are_those_of_the_papers_example():
    assert discoveries(PUBLISHED, 0.05) == [True] * 4 + [False] * 11
    shuffled = random.Random(1).sample(range(15), 15)
    kept = discoveries([PUBLISHED[at] for at in shuffled], 0.05)
    assert sorted(at for at, held in zip(shuffled, kept, strict=True) if held) == [0, 1, 2, 3]


def test_a_larger_p_value_is_carried_by_smaller_ones_behind_it():
    # 0.04 is above 0.05 / 2, but 0.045 is not above 0.05: both hold.
    assert discoveries([0.04, 0.045], 0.05) == [True, True]
    assert discoveries([0.04, 0.06], 0.05) == [False, False] and discoveries([], 0.05) == []


def test_intervals_hold_the_true_value_as_often_as_they_say():
    random_state, held, cells = random.Random(7), 0, []
    for _ in range(400):
        cells.append([math.exp(random_state.gauss(0.0, 0.05)) for _ in range(3)])
    for own in range(0, 400, 20):  # classes of 20 cells, of three processes each
        group = cells[own : own + 20]
        spread = pooled(group)
        for values in group:
            low, high = interval(centre(values), 3, spread)
            held += low <= 1.0 <= high
    # 380 of 400 are expected; ± 3 standard deviations of a binomial are 13.
    assert 367 <= held <= 393


def test_a_cells_own_three_processes_would_say_as_much_with_far_wider_intervals():
    random_state = random.Random(3)
    cells = [[math.exp(random_state.gauss(0.0, 0.05)) for _ in range(3)] for _ in range(40)]
    of_all = interval(1.0, 3, pooled(cells))
    alone = statistics.median(math.log(interval(1.0, 3, pooled([values]))[1]) for values in cells)
    # t of 2 degrees of freedom is 4.303, of 80 it is 1.990.
    assert alone > 1.5 * math.log(of_all[1])


def test_the_f_test_has_the_quantiles_of_printed_tables():
    # Upper 0.1 % and 1 % points of F: 8.77 with 2 and 30 degrees of freedom, 4.98 with 2 and 60.
    for ratio, degrees, share in ((8.77, 30, 0.001), (4.98, 60, 0.01)):
        own, others = Spread(math.sqrt(ratio), 2), Spread(1.0, degrees)
        assert confidence._variance_tail(own, others) == pytest.approx(share, rel=0.01)


def test_of_equal_spreads_hardly_any_series_is_unsteady_and_a_wild_one_is():
    chance = random.Random(5)
    cells = [[math.exp(chance.gauss(0, 0.1)) for _ in range(3)] for _ in range(200)]
    assert len(confidence.unsteady(cells)) <= 2  # 0.2 are expected
    assert 200 in confidence.unsteady([*cells, [1.0, 1.0, 3.0]])
    assert confidence.unsteady([[1.0, 2.0]]) == confidence.unsteady([[1.0], [2.0]]) == set()


def test_between_cells_is_what_processes_do_not_explain():
    twice = [[[1.0, 1.0], [math.exp(0.2), math.exp(0.2)]]]  # logarithms 0 and 0.2: a variance of 0.02
    assert confidence.between_cells(twice, Spread(0.0, 2)) == pytest.approx(math.sqrt(0.02))
    assert confidence.between_cells(twice, Spread(0.1, 2)) == pytest.approx(math.sqrt(0.02 - 0.1**2 / 2))
    assert confidence.between_cells(twice, Spread(0.3, 2)) == 0
    assert confidence.between_cells([[[1.0, 2.0]]], Spread(0.1, 2)) == 0


def test_a_control_of_few_cells_costs_degrees_of_freedom():
    # Variances 0.01 / 2 of 40 degrees and 0.01 of 2: (0.015)^2 / (0.005^2 / 40 + 0.01^2 / 2) = 4.4445 (Satterthwaite).
    spread = Spread(0.1, 40, cells=0.1, cells_degrees=2)
    assert confidence.freedom(spread.parts(2)) == pytest.approx(2.25e-4 / (0.005**2 / 40 + 0.01**2 / 2))
    _, high = interval(1.0, 2, spread)
    assert math.log(high) == pytest.approx(2.670 * math.sqrt(0.015), rel=2e-3)  # t of 4.44 degrees is 2.670
    # Of two cells of that class both parts are twice as large: the degrees stay.
    found = difference((1.0, 2, spread), (1.0, 2, spread), is_one_class=True)
    assert found.error == pytest.approx(math.sqrt(0.03)) and found.degrees == pytest.approx(4.4335, rel=1e-2)
