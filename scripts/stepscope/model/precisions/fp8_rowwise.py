"""The linear layers of the blocks in 8-bit floating-point numbers, with a scale for each row.

As `fp8`, but each row of a factor is divided by a number of its own, along the inner dimension, so
that one large element coarsens its row and not the tensor; e4m3 in all three products ("rowwise
dynamic scaling"). A product has other rows than its transpose: each factor is cast twice, from what
is kept in 16 or 32 bits.
"""

import torch
from torch import Tensor, nn

from stepscope.model.about import Precision

from . import Format, fp8

ABOUT = Precision(
    label="fp8 rowwise",
    title="fp8 in the blocks' linear layers, a scale a row",
    mechanism="Products of 8 bits, less what casts and scales take.",
    recipe="Measured with this project's own code; torchao's"
    ' `Float8LinearConfig.from_recipe_name("rowwise")` was not',
    colour="black",
    data_sheet="fp8",
    tolerance=None,
)
FORMAT = Format(
    dtype="bfloat16",
    bytes=1,
    is_autocast=True,
    capability=(9, 0),
    cpu_flags=(),
    outside="bf16",
)

MULTIPLE = fp8.MULTIPLE
unsupported = fp8.unsupported


def convert(blocks: nn.Module) -> None:
    """Have all linear layers of the blocks multiply in fp8, scaled by rows."""
    fp8.convert(blocks, linear)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """As `fp8.linear`, of the same shapes."""
    return _RowwiseLinear.apply(x.flatten(0, -2), weight).unflatten(0, x.shape[:-1])


class _RowwiseLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        of_x = product(gradient, weight.t())
        of_weight = product(gradient.t(), x.t())
        return of_x.to(x.dtype), of_weight.to(weight.dtype)


def product(a: Tensor, b: Tensor) -> Tensor:
    """a b^T in bf16. a: (m, k); b: (n, k); both are cast along k, which has the scales."""
    low_a, scale_a = fp8.quantized(a, is_rowwise=True)
    low_b, scale_b = fp8.quantized(b, is_rowwise=True)
    rows, columns = low_a.contiguous(), low_b.contiguous().t()
    # The only sums that these kernels have are the tensor cores' own.
    return fp8.product(rows, columns, scale_a, scale_b.t(), torch.bfloat16, is_fast=True)
