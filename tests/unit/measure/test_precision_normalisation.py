"""Normalisations forced into a format, against what the formats' ranges and steps say."""

import json
import math

import pytest
from common import picked
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
    assert math.isfinite(float(before["inner"])) and before["zero"] == 0 and before["error"] < 2**-9
    assert (after["inner"], after["zero"], after["error"]) == ("inf", 1024, 1.0)
    for name in ("fp32", "bf16"):
        assert forced(operation, "all in the format", name, "largest |x|", 16384.0)["error"] < 2**-6
    for name, step in (("fp16", 2**-11), ("bf16", 2**-8)):
        # Autocast computes in fp32: what is left is the rounding of the result, half a step at
        # most.
        assert forced(operation, "under autocast", name, "largest |x|", 16384.0)["error"] <= step


def test_a_variance_as_a_difference_of_squares_cancels(forced):
    way = "variance as mean(x²) − mean(x)²"
    for name in ("fp16", "bf16"):
        # At a mean of 100 squares are near 10^4, where both formats have steps above 1.
        row = forced("LayerNorm", way, name, "mean of x", 100.0)
        assert float(row["inner"]) == pytest.approx(0.0, abs=8.0) and row["error"] > 0.4
        assert row["inner_exact"] == pytest.approx(1.0, rel=0.05)
        assert forced("LayerNorm", "all in the format", name, "mean of x", 100.0)["error"] < 2**-6
    # 1000^2 overflows: infinity minus infinity.
    assert forced("LayerNorm", way, "fp16", "mean of x", 1000.0)["nan"] == 1024
    assert forced("LayerNorm", way, "fp32", "mean of x", 100.0)["error"] < 1e-3


def test_the_sum_of_65536_ones_is_beyond_fp16(forced):
    row = forced("softmax", "all in the format", "fp16", "equal logits", 65536.0)
    assert (row["inner"], row["zero"]) == ("inf", 65536)
    assert forced("softmax", "under autocast", "fp16", "equal logits", 65536.0)["error"] < 1e-3


def test_exponentials_without_the_maximum_overflow(forced):
    way = "without the maximum"
    # exp(12) = 162755 is beyond fp16, exp(100) = 2.7 x 10^43 beyond fp32 and bf16: infinity over
    # infinity.
    assert forced("softmax", way, "fp16", "largest logit", 12.0)["nan"] > 0
    assert forced("softmax", way, "bf16", "largest logit", 80.0)["nan"] == 0
    assert forced("softmax", way, "bf16", "largest logit", 100.0)["nan"] > 0
    assert forced("softmax", "all in the format", "fp16", "largest logit", 100.0)["error"] < 2**-9


def test_types_under_autocast_on_a_cpu(tables):
    """Whose list of operators that autocast to fp32 has neither softmax nor LayerNorm (torch.amp's
    documentation)."""
    rows = picked(tables["operators"], autocast="bf16")
    given = {(row["operation"], row["given"]): row["output_dtype"] for row in rows}
    for operation in ("own RMSNorm", "own softmax", "torch softmax", "torch LayerNorm"):
        assert (given[operation, "bf16"], given[operation, "fp32"]) == ("bf16", "fp32")
    assert given["own cross-entropy", "bf16"] == "fp32"
