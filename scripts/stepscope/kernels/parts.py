"""fp32 that is multiplied in parts, taken apart once before the kernels that multiply.

x = high + mid + low, three bf16 of 8 bits each, and a product of two is the sum of the six products
of parts that matter (Henry et al. 2019). A kernel takes tensors apart into a workspace of 1.5 times
their size; others load parts that the tensor cores read from shared memory as they are.
"""

import torch
import triton
import triton.language as tl
from triton import knobs
from triton.language import constexpr

from .launching import Plan, Slot
from .operands import block_of, rounded_up
from .pointers import head_of, load_tile
from .rows import PADDED_TO

# Triton's interpreter multiplies tiles of bf16 as if they held integers.
_INTERPRETED = constexpr(knobs.runtime.interpret)
_ELEMENTS_OF_A_TILE = 4096


def split(plan: Plan, x: Slot) -> Slot:
    """The parts of a 4D fp32 tensor, (batch * heads, padded length, 3, block) bf16, with zeros
    where it is padded."""
    batch, heads, length, d_head = x.shape
    padded, block = rounded_up(length, PADDED_TO), block_of(d_head)
    parts = plan.scratch(batch * heads, padded, 3, block, dtype=torch.bfloat16)
    rows = min(PADDED_TO, _ELEMENTS_OF_A_TILE // block)
    plan.launch(
        _split_kernel,
        (padded // rows, batch * heads),
        (x, parts, x.strides[:-1], heads, length, padded),
        {"ROWS": rows, "D_HEAD": d_head, "BLOCK": block},
        num_warps=4,
    )
    return parts


@triton.jit(do_not_specialize=["heads", "length", "padded"])
def _split_kernel(
    x,
    parts,
    strides,
    heads,
    length,
    padded,
    ROWS: constexpr,
    D_HEAD: constexpr,
    BLOCK: constexpr,
):
    row = tl.program_id(0) * ROWS
    sequence = tl.program_id(1)
    values = load_tile(
        head_of(x, strides, sequence, heads), strides, row, length, ROWS, D_HEAD, BLOCK, True
    )
    high, mid, low = parts_of(values)
    # Of what is not finite there is no rest: infinity less infinity is not a number.
    finite = tl.abs(high.to(tl.float32)) < float("inf")
    tile = first_tile(parts, sequence, padded, ROWS, BLOCK) + row * (3 * BLOCK)
    tl.store(tile, high)
    tl.store(tile + BLOCK, tl.where(finite, mid, 0.0))
    tl.store(tile + 2 * BLOCK, tl.where(finite, low, 0.0))


@triton.jit
def parts_of(x):
    """(high, mid, low) in bf16, each rounding what the ones before left."""
    high = x.to(tl.bfloat16)
    rest = x - high.to(tl.float32)
    mid = rest.to(tl.bfloat16)
    return high, mid, (rest - mid.to(tl.float32)).to(tl.bfloat16)


@triton.jit
def first_tile(parts, sequence, padded, ROWS: constexpr, BLOCK: constexpr):
    """Pointers to the high parts of the first rows of a sequence, (ROWS, BLOCK)."""
    head = parts + sequence.to(tl.int64) * padded * (3 * BLOCK)
    return head + tl.arange(0, ROWS)[:, None] * (3 * BLOCK) + tl.arange(0, BLOCK)[None, :]


@triton.jit
def load_parts(tile, row, BLOCK: constexpr):
    """(high, mid, low) of a tile that begins with this row."""
    tile += tl.cast(row, tl.int64) * (3 * BLOCK)
    return tl.load(tile), tl.load(tile + BLOCK), tl.load(tile + 2 * BLOCK)


@triton.jit
def transposed(parts):
    high, mid, low = parts
    return high.T, mid.T, low.T


@triton.jit
def product(a, b):
    """a b, each in parts, the smallest products first.

    Tensor cores cut off what they add to a sum below its last bit, so that an error of one sign
    grows with the number of additions: sums over many tiles add these by ordinary additions, which
    round.
    """
    a_high, a_mid, a_low = a
    b_high, b_mid, b_low = b
    product = _add(a_low, b_high, tl.zeros([a_low.shape[0], b_high.shape[1]], tl.float32))
    product = _add(a_mid, b_mid, product)
    product = _add(a_high, b_low, product)
    product = _add(a_mid, b_high, product)
    product = _add(a_high, b_mid, product)
    return _add(a_high, b_high, product)


@triton.jit
def _add(a, b, added_to):
    if _INTERPRETED:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), added_to, input_precision="ieee")
    else:
        return tl.dot(a, b, added_to)
