"""Power laws against numbers worked out by hand."""

import math

import pytest
from stepscope.report.data.growth import LEAST_POINTS, power_law


def test_points_on_a_law_give_its_exponent_without_doubt():
    law = power_law((x, 3 * x**2) for x in (1.0, 2.0, 5.0, 10.0))
    assert (law.exponent, law.low, law.high) == pytest.approx((2.0, 2.0, 2.0))
    assert law.points == 4


def test_the_interval_is_students():
    # ln x = 0, 1, 2, 3 and ln y = 0, 1, 1, 2: the slope is 3 / 5, the squares left are 0.2 with two degrees of freedom,
    # so its error is sqrt(0.2 / 2 / 5), and Student's t of two degrees 4.3027, by any printed table.
    law = power_law((math.exp(x), math.exp(y)) for x, y in ((0, 0), (1, 1), (2, 1), (3, 2)))
    half = 4.3027 * math.sqrt(0.02)
    assert (law.exponent, law.low, law.high) == pytest.approx((0.6, 0.6 - half, 0.6 + half), abs=1e-4)


def test_too_few_different_points_give_no_law():
    points = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (3.0, 4.0)]
    assert LEAST_POINTS == 4 and power_law(points) is None
    assert power_law([*points, (4.0, 4.0)]) is not None
