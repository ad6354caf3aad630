"""fp8 layers beside float64: what is rounded is known, so that the errors are."""

import math
from dataclasses import replace

import pytest
import torch
from stepscope.model.precisions import fp8, fp8_rowwise
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import Linear, build_model

# Largest relative error of one rounding: half a step of 3 and 2 bits.
E4M3_UNIT, E5M2_UNIT = 2.0**-4, 2.0**-3
SHAPE = ModelShape(64, 128, 2, 2, 50)


@pytest.mark.parametrize(
    "dtype, unit, normal",
    [(torch.float8_e4m3fn, E4M3_UNIT, 2.0**-6), (torch.float8_e5m2, E5M2_UNIT, 2.0**-14)],
)
def test_scaled_numbers_are_off_by_the_formats_rounding(dtype, unit, normal):
    torch.manual_seed(0)
    x = torch.randn(64, 48) * torch.logspace(-2, 2, 48)
    low, scale = fp8.quantized(x, dtype)
    back, exact = low.double() * scale.double(), x.double()
    is_normal = exact.abs() >= normal * scale.double()
    assert ((back - exact).abs()[is_normal] <= unit * exact.abs()[is_normal] * (1 + 1e-6)).all()
    # the largest stays itself
    torch.testing.assert_close(back.abs().max(), exact.abs().max(), rtol=1e-6, atol=0)


def test_zeros_stay_zeros():
    low, scale = fp8.quantized(torch.zeros(4, 4))
    assert (low.float() == 0).all() and math.isfinite(scale)


@pytest.mark.parametrize("scaled, of_gradient", [(fp8, E5M2_UNIT), (fp8_rowwise, E4M3_UNIT)])
def test_product_and_gradients_are_off_by_two_roundings_of_each_factor(scaled, of_gradient):
    torch.manual_seed(0)
    x = torch.randn(8, 32, 64, requires_grad=True)
    weight = (torch.randn(96, 64) / 8).requires_grad_()
    y = scaled.linear(x, weight)
    gradient = torch.randn(8, 32, 96)
    y.backward(gradient.to(y.dtype))
    rows, exact_weight = x.detach().double().flatten(0, 1), weight.detach().double()
    exact_gradient = gradient.double().flatten(0, 1)
    # Of n independent terms each off by a relative error of variance u^2 / 3 at most, the sum is
    # off by as much: a relative error of the whole matrix of sqrt(2/3) u for two factors of unit u.
    for got, exact, unit in (
        (y.flatten(0, 1), rows @ exact_weight.T, E4M3_UNIT),
        (x.grad.flatten(0, 1), exact_gradient @ exact_weight, of_gradient),
        (weight.grad, exact_gradient.T @ rows, of_gradient),
    ):
        error = (got.double() - exact).norm() / exact.norm()
        bound = math.hypot(unit, E4M3_UNIT) / math.sqrt(3)
        assert bound / 6 < error < bound, (error, bound)  # rounded, and no more than rounded
    assert y.dtype == torch.bfloat16 and x.grad.dtype == weight.grad.dtype == torch.float32


def test_a_large_row_coarsens_itself_alone():
    """Rows of 1 beside one of 2^24: divided by its largest magnitude, the tensor loses them (e4m3
    reaches down to 2^-9 and up to 448); each divided by its own, all come back as they were."""
    x = torch.ones(16, 16)
    x[3] = 2.0**24
    weight = torch.eye(16)
    lost = fp8.linear(x, weight)
    kept = fp8_rowwise.linear(x, weight)
    assert torch.equal(kept.float(), x) and (lost[:3] == 0).all()
    # the same of the columns that the weight's gradient is summed along: x^T, each row by itself
    assert torch.equal(fp8_rowwise.product(x, x.t().contiguous().t()).float(), x @ x.t())


@pytest.mark.parametrize("scaled", [fp8, fp8_rowwise])
def test_only_the_blocks_layers_are_converted(scaled):
    model = build_model(SHAPE, 16, "naive", "cpu", seed=0)
    scaled.convert(model.blocks)
    layers = [each for each in model.modules() if isinstance(each, Linear)]
    assert [each.product is scaled.linear for each in layers] == [True] * 5 * SHAPE.num_layers + [
        False
    ]


@pytest.mark.parametrize(
    "changed, tokens, said",
    [
        ({}, 64, None),
        ({"d_ff": 136}, 64, "fp8 needs multiples of 16; d_ff is 136"),
        ({}, 24, "fp8 needs multiples of 16; tokens is 24"),
    ],
)
def test_dimensions_that_no_tensor_core_takes_are_named(changed, tokens, said):
    assert fp8.unsupported(replace(SHAPE, **changed), tokens) == said
