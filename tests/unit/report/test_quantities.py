"""Quantities, their arithmetic, and how they print."""

import math

import pytest
from stepscope.report.kit.quantity import (
    Quantity,
    gap,
    is_below,
    minus,
    over,
    plus,
    scaled,
    share,
    time_of,
)

NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    "said, quantity",
    {
        "424 ms": Quantity(0.4241, "s"),
        "2,086 ms": Quantity(2.0858, "s"),
        "250 s": Quantity(250.0, "s"),
        "4.46 µs": Quantity(4.46e-6, "s"),
        "1,000 µs": Quantity(0.0009996, "s"),
        "88.9 GiB": Quantity(88.9 * 2**30, "B"),
        "512 MiB": Quantity(512 * 2**20, "B"),
        "763 TFLOP/s": Quantity(7.63e14, "FLOP/s"),
        "4.16 TB/s": Quantity(4.156e12, "B/s"),
        "3.41 billion": Quantity(3.4068e9, "parameters"),
        "6,148": Quantity(6148.0, "count"),
        "38 %": Quantity(0.3812, "share"),
        "+28 %": Quantity(0.28, "gap"),
        "−2.1 %": Quantity(-0.0213, "gap"),
        "0 %": Quantity(1e-7, "gap"),
        "4": Quantity(4.0, "exact"),
        "10.0098": Quantity(10.009765625, "exact"),
        "4.92": Quantity(4.917, "1", 4.83, 5.0),
        "4.2 [2.6, 6.9]": Quantity(4.2, "1", 2.6, 6.9),
        "60 [47, 77] ms": Quantity(0.060, "s", 0.047, 0.077),
        "1.4 [0.2, 9.6] ms": Quantity(1.4e-3, "s", 0.2e-3, 9.6e-3),  # its low end is no 0
    }.items(),
)
def test_in_a_sentence(quantity, said):
    assert str(quantity) == said.replace(" ", NBSP)


def test_ratio_of_independent_measurements():
    # ln(1.1) and ln(1.2) add in quadrature: exp(hypot(0.09531, 0.18232)) = 1.228422
    made = over(Quantity(2.0, "s", 2 / 1.1, 2 * 1.1), Quantity(1.0, "s", 1 / 1.2, 1.2))
    assert (made.low, made.value, made.high) == pytest.approx(
        (2 / 1.228422, 2.0, 2 * 1.228422), rel=1e-6
    )


def test_what_is_missing_stays_missing():
    one = Quantity(1.0, "s")
    found = [
        over(one, None),
        over(one, Quantity(0.0, "s")),
        minus(None, one),
        plus(one, None),
        plus(),
        share(None, one),
    ]
    assert found == [None] * 6
    assert not is_below(None, one)
    assert is_below(one, Quantity(1.0, "s"), 1.1)


def test_predictions_and_gaps():
    assert time_of(Quantity(50e12, "FLOP"), Quantity(500e12, "FLOP/s")).value == pytest.approx(0.1)
    assert gap(Quantity(30.0, "s"), Quantity(24.0, "s")).value == pytest.approx(0.25)
    assert scaled(Quantity(2.0, "s", 1.0, 3.0), 10, "B") == Quantity(20.0, "B", 10.0, 30.0)


def test_cells_are_kept_once():
    made = plus(Quantity(1.0, "s", cells=("a",)), Quantity(2.0, "s", cells=("a", "b")))
    assert made.cells == ("a", "b") and math.isclose(made.value, 3.0)
