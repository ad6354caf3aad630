"""Whether variants compute the same step."""

import math

import pytest
from stepscope.results.agreement import compared

FIRST = {"loss": 2.0, "gradient_norm": 5.0, "gradient_sample": [3.0, 4.0]}


def check(precision="fp32", **changes):
    return compared(
        {"first": FIRST, "other": FIRST | changes}, {"first": "fp32", "other": precision}
    )["other"]


def test_the_same_is_the_same():
    none = {"difference": 0.0, "loss_difference": 0.0, "tolerance": 1e-4, "same": True}
    assert compared({"first": FIRST}, {"first": "fp32"}) == {"first": none}


@pytest.mark.parametrize(
    "changes, key, difference",
    [
        ({"gradient_sample": [3.0, 4.5]}, "difference", 0.1),  # 0.5 of a length of 5
        ({"gradient_norm": 5.5}, "difference", 0.1),
        ({"loss": 2.02}, "loss_difference", 0.01),  # may be a tenth of the gradients'
    ],
)
def test_the_largest_difference_counts_and_a_wider_format_may_differ_more(changes, key, difference):
    in_fp32, in_bf16 = check(**changes), check("bf16", **changes)
    assert in_fp32[key] == in_bf16[key] == pytest.approx(difference)
    assert (in_fp32["same"], in_bf16["same"]) == (False, False)
    assert in_bf16["tolerance"] == 16 / 256
    assert check("bf16", gradient_norm=5.25)["same"]


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": math.nan},
        {"gradient_norm": math.inf},
        {"gradient_sample": [3.0]},
        {"gradient_sample": []},
    ],
)
def test_what_cannot_be_compared_is_not_the_same(changes):
    found = check(**changes)
    assert found["difference"] == found["loss_difference"] == math.inf
    assert not found["same"]
