"""Whether variants compute the same step."""

import math

import pytest
from stepscope.results.agreement import compared, tolerance
from stepscope.results.cells import MeasuredCell

FIRST = {"loss": 2.0, "gradient_norm": 5.0, "gradient_sample": [3.0, 4.0]}


def test_the_same_is_the_same():
    assert compared(FIRST, FIRST) == {"difference": 0.0, "loss_difference": 0.0}


@pytest.mark.parametrize(
    "changes, key, difference",
    [
        ({"gradient_sample": [3.0, 4.5]}, "difference", 0.1),  # 0.5 of a length of 5
        ({"gradient_norm": 5.5}, "difference", 0.1),
        ({"loss": 2.02}, "loss_difference", 0.01),
    ],
)
def test_the_largest_difference_counts(changes, key, difference):
    assert compared(FIRST | changes, FIRST)[key] == pytest.approx(difference)


@pytest.mark.parametrize("precision, most", [("fp32", 1e-4), ("bf16", 16 / 256), ("fp8", None)])
def test_a_wider_format_may_differ_more_and_fp8_is_not_judged(precision, most):
    rungs = [{"name": "first"}, {"name": "other", "precision": precision}]
    cell = MeasuredCell("lab/ladder/tiny/ctx8", {"variants": rungs}, "", "")
    assert tolerance(cell, "other", "first") == most
    assert tolerance(cell, "first", "first") == 1e-4


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": math.nan},
        {"gradient_norm": math.inf},
        {"gradient_sample": [3.0]},
        {"gradient_sample": []},
    ],
)
def test_what_cannot_be_compared_is_infinitely_far(changes):
    found = compared(FIRST | changes, FIRST)
    assert found["difference"] == found["loss_difference"] == math.inf
