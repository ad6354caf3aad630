"""Normalisations forced into a format, against what the formats' ranges and steps say."""

import json
import math

import pytest
from stepscope.measure.precision_normalisation import measure

SPEC = {"device": "cpu", "seed": 0}


@pytest.fixture(scope="module")
def tables():
    found = measure(SPEC)
    json.dumps(found, allow_nan=False)  # what JSON lacks is written as words
    return found


@pytest.fixture
def forced(tables):
    def row(operation, way, name, quantity, value):
        key = {
            "operation": operation,
            "way": way,
            "format": name,
            "quantity": quantity,
            "value": value,
        }
        (found,) = (row for row in tables["forced"] if row | key == row)
        return found

    return row


@pytest.mark.parametrize("operation", ["RMSNorm", "LayerNorm"])
def test_squares_from_256_on_overflow_fp16_and_the_result_is_zero(forced, operation):
    # 65504 is the largest number of fp16; 255^2 = 65025 and 256^2 = 65536.
    before = forced(operation, "all in the format", "fp16", "largest |x|", 255.0)
    after = forced(operation, "all in the format", "fp16", "largest |x|", 256.0)
    assert math.isfinite(float(before["inner"])) and before["error"] < 2**-9
    assert (after["inner"], after["error"]) == ("inf", 1.0)
    for name in ("fp32", "bf16"):
        assert forced(operation, "all in the format", name, "largest |x|", 16384.0)["error"] < 2**-6
    for name, step in (("fp16", 2**-11), ("bf16", 2**-8)):
        # Autocast computes in fp32: what is left is the rounding of the result, half a step at
        # most.
        assert forced(operation, "under autocast", name, "largest |x|", 16384.0)["error"] <= step


def test_the_sum_of_65536_ones_is_beyond_fp16(forced):
    row = forced("softmax", "all in the format", "fp16", "equal logits", 65536.0)
    assert (row["inner"], row["error"]) == ("inf", 1.0)  # each exponential over infinity
    assert forced("softmax", "under autocast", "fp16", "equal logits", 65536.0)["error"] < 1e-3
