"""Products of linear layers in 16 and 8 bits, against what the formats' steps allow."""

import pytest
import torch
import torch.nn.functional as F
from common import TINY, picked
from stepscope.measure.precision_products import PRODUCTS, measure, products

STEP = {
    "bf16": 2.0**-9,
    "fp16": 2.0**-12,
    "fp8": 2.0**-4,
}  # largest relative error of one rounding; of fp8, e4m3
SPEC = TINY | {"d_model": 32, "d_ff": 64, "vocab_size": 50, "context": 16}


def test_gradients_of_a_product_are_the_closed_ones():
    x, weight, gradient = (
        torch.randn(*size, dtype=torch.float64) for size in ((6, 4), (5, 4), (6, 5))
    )
    found = products(F.linear, x, weight, gradient)
    torch.testing.assert_close(found, (x @ weight.T, gradient @ weight, gradient.T @ x))


@pytest.mark.parametrize("d_model, status", [(32, {"ok"}), (24, {"unsupported"})])
def test_every_layer_is_off_by_roundings_of_its_factors(d_model, status):
    rows = measure({**SPEC, "d_model": d_model})["forced"]
    assert len(rows) == 2 * 5 * len(PRODUCTS) * len(
        STEP
    )  # QKV, output and three of SwiGLU in each block
    assert set(picked(rows, "status", format="fp8")) == status
    for row in rows:
        if row["status"] == "ok":
            assert STEP[row["format"]] / 6 < row["error"] < 4 * STEP[row["format"]], row
