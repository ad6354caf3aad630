"""Bytes that are moved between the GPU and its memory: by AdamW for each parameter, by the plain
model's named ranges, and at least by a step's kinds of kernels. Standard library only."""

from stepscope.axes import CAUSAL
from stepscope.model.shape import ModelShape

from .flops import attention_flops, forward_flops_by_component
from .footprint import all_sizes, product
from .options import TERMS

Work = tuple[float, float]  # operations, and bytes that are read and written
OF_ATTENTION = ("scores", "attention x V")  # products that a fused kernel holds

# It reads a parameter, its gradient and two moments, and writes all of these but the gradient; 4
# bytes each.
OPTIMIZER_BYTES = 4 * 4 + 3 * 4
# Our AdamW runs one operation after the other on whole tensors (stepscope.model.optimizers.own). In
# numbers read and written: lerp 2 + 1, times b2 1 + 1, addcmul 2 + 1, square root 1 + 1, + epsilon
# 1 + 1, decay 1 + 1, addcdiv 3 + 1.
WRITTEN_OUT_BYTES = 4 * 18
# lerp 3, times b2 1, addcmul 3, square root 1, + epsilon 1, decay 1, addcdiv 3
OPTIMIZER_OPERATIONS = 13


def of_ranges(shape: ModelShape, batch: int, context: int, is_mixed: bool) -> dict[str, Work]:
    """The work of each named range of the plain model's forward pass, in all blocks.

    Products count as in stepscope.formulas.flops, all else one operation for each addition,
    multiplication or function of a number. is_mixed: under autocast.
    """
    sizes = all_sizes(shape, batch, context)
    products = forward_flops_by_component(shape, batch, context)
    found: dict[str, Work] = {}
    for name, (multiplied, *rows) in TERMS["ranges"].items():
        work, moved = products.get(multiplied, 0), 0
        for dims, operations, in_mixed, in_fp32 in rows:
            numbers = product(dims, sizes)
            work += operations * numbers
            moved += numbers * (in_mixed if is_mixed else in_fp32)
        found[name] = work, moved
    return found


def of_kinds(
    shape: ModelShape, batch: int, context: int, numbers: tuple[int, int], is_fused: bool
) -> dict[str, Work]:
    """Kind of kernels: the work of a forward and a backward pass, each product with two more, and
    the least that it moves. numbers: bytes of a number, in products and in fused attention.
    is_fused: the scores stay in their kernel, which leaves out what a causal mask hides."""
    number, of_attention = numbers
    sizes = all_sizes(shape, batch, context)
    products = forward_flops_by_component(shape, batch, context)
    work = moved = 0
    for name, dims in TERMS["operands"].items():
        if not (is_fused and name in OF_ATTENTION):
            work += 3 * products[name]
            moved += 3 * number * sum(product(each, sizes) for each in dims)
    found: dict[str, Work] = {"matmul": (work, moved)}
    if is_fused:
        a_pass = batch * shape.num_layers, shape.num_heads, context, shape.d_head, CAUSAL
        both = sum(attention_flops(*a_pass, direction) for direction in ("forward", "backward"))
        # Forward reads Q, K and V and writes the result; backward reads these and the result's
        # gradient, and writes three.
        width = sizes["d_Q"] + sizes["d_K"]
        rows = shape.num_layers * batch * context
        found["fused attention"] = both, 6 * of_attention * rows * width
    return found
