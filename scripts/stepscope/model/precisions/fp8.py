"""Linear layers of the blocks that multiply 8-bit floating-point numbers; embedding, head and
attention stay.

Forward y = x W^T multiplies e4m3 by e4m3; backward dx = dy W and dW = dy^T x take dy in e5m2, which
has the range that gradients need (Micikevicius et al. 2022, FP8 Formats for Deep Learning). Each
tensor is divided by one number, its largest magnitude over the format's largest, found anew in each
step ("tensorwise dynamic scaling"). Weights stay in fp32 and are cast in each pass. Tensor cores
want the inner dimension contiguous in both factors: transposes and casts are written plainly here,
for a compiler to fuse with what comes before them.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from stepscope.model.about import Precision
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import Linear

from . import Format

ABOUT = Precision(
    label="fp8",
    title="fp8 in the blocks' linear layers",
    mechanism="Products of 8 bits, less what casts and scales take.",
    recipe="Measured with this project's own code;"
    " torchao's `convert_to_float8_training(model.blocks)` was not",
    colour="black",
    data_sheet="fp8",
    tolerance=None,
)
# bf16's, but for the products of the blocks, whose operands have one byte
FORMAT = Format(
    dtype="bfloat16",
    bytes=1,
    is_autocast=True,
    capability=(8, 9),
    cpu_flags=(),
    outside="bf16",
)

FORWARD = torch.float8_e4m3fn
GRADIENT = torch.float8_e5m2
MULTIPLE = 16  # of all dimensions of a product
LEAST = 1e-12  # scale of a tensor that is all zeros


def unsupported(shape: ModelShape, tokens: int) -> str | None:
    """Why products of this shape and so many tokens a step cannot be in fp8, in one line; None if
    they can."""
    sizes = {
        "d_model": shape.d_model,
        "d_ff": shape.d_ff,
        "width of Q, K and V": shape.qkv_width,
        "tokens": tokens,
    }
    wrong = next((name for name, size in sizes.items() if size % MULTIPLE), None)
    return f"fp8 needs multiples of {MULTIPLE}; {wrong} is {sizes[wrong]:,}" if wrong else None


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x W^T in bf16, of products in fp8. x: (..., d_in); weight: (d_out, d_in), fp32, as its
    gradient is."""
    return _Fp8Linear.apply(x.flatten(0, -2), weight).unflatten(0, x.shape[:-1])


def convert(blocks: nn.Module, product: Callable[[Tensor, Tensor], Tensor] = linear) -> None:
    """Have all linear layers of the blocks multiply so."""
    for layer in blocks.modules():
        if isinstance(layer, Linear):
            layer.product = product


class _Fp8Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:
        low_x, scale_x = quantized(x)
        low_weight, scale_weight = quantized(weight)
        ctx.save_for_backward(low_x, scale_x, low_weight, scale_weight)
        ctx.dtype = x.dtype
        return product(low_x, low_weight.t(), scale_x, scale_weight, torch.bfloat16, is_fast=True)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor]:
        low_x, scale_x, low_weight, scale_weight = ctx.saved_tensors
        low, scale = quantized(gradient, GRADIENT)
        of_x = product(low, _by_columns(low_weight), scale, scale_weight, torch.bfloat16)
        of_weight = product(low.t().contiguous(), _by_columns(low_x), scale, scale_x, torch.float32)
        return of_x.to(ctx.dtype), of_weight


def quantized(
    x: Tensor, dtype: torch.dtype = FORWARD, is_rowwise: bool = False
) -> tuple[Tensor, Tensor]:
    """(x / scale rounded to the format, scale), the scale such that the largest magnitude is the
    format's largest: of x, or of each of its rows: (rows, 1)."""
    largest = x.abs().amax(-1, keepdim=True) if is_rowwise else x.abs().amax()
    scale = (largest.float() / torch.finfo(dtype).max).clamp(min=LEAST)
    # What rounding lifts above the largest rounds back to it.
    return (x.float() * (1 / scale)).to(dtype), scale


def product(
    a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, dtype: torch.dtype, is_fast=False
) -> Tensor:
    """a b, times both scales. a: (m, k), contiguous; b: (k, n), its columns contiguous. is_fast:
    sums stay in the tensor cores' accumulators, which have fewer bits than fp32."""
    return torch._scaled_mm(
        a, b, scale_a=scale_a, scale_b=scale_b, out_dtype=dtype, use_fast_accum=is_fast
    )


def _by_columns(x: Tensor) -> Tensor:
    """The same matrix with its columns contiguous."""
    return x.t().contiguous().t()
