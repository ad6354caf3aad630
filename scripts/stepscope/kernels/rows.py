"""What the backward pass needs of every query, made once before it: a shift of its scores, its
delta, and counters."""

import torch
import triton
import triton.language as tl

from .launching import Plan, Slot
from .operands import block_of, rounded_up, sizes
from .pointers import head_of, load_tile

# Queries are padded to a multiple of this, so that the backward kernels read whole tiles without a
# mask.
PADDED_TO = 128
ROWS_OF_A_TURN = 64
_ELEMENTS_OF_A_TILE = 4096


def rows_of(
    plan: Plan, output: Slot, d_output: Slot, lse: Slot, unit: float | None = None
) -> tuple[Slot, Slot, Slot]:
    """For every query, padded: a shift of its scores, and its delta, rowsum(dO * O); both (batch *
    heads, padded queries), fp32. And zeros, (batch * heads, padded queries / ROWS_OF_A_TURN) int32,
    with which programs that add can take turns.

    The shift is the log-sum-exp times `unit`, 1 / scale = sqrt(d_head) unless one is given. Then
    the weights of a query are exp(scale * (scores - shift)), and the gradient of its scores is
    weights * (dO V^T - delta) (FlashAttention-2, Dao 2023, section 3.1.1). A shift of infinity
    stands for a query without weights: one that sees no key, or one of the padding.
    """
    sequences, heads, queries, _ = sizes(output, output)
    padded = rounded_up(queries, PADDED_TO)
    shift, delta = (plan.scratch(sequences, padded, dtype=torch.float32) for _ in range(2))
    turns = plan.scratch(sequences, padded // ROWS_OF_A_TURN, dtype=torch.int32)
    block = block_of(output.shape[-1])
    rows = min(PADDED_TO, _ELEMENTS_OF_A_TILE // block)
    plan.launch(
        _rows_kernel,
        (padded // rows, sequences),
        (
            output,
            d_output,
            lse,
            shift,
            delta,
            turns,
            output.strides[:-1],
            d_output.strides[:-1],
            heads,
            queries,
            padded,
            output.shape[-1] ** 0.5 if unit is None else unit,
        ),
        {"ROWS": rows, "D_HEAD": output.shape[-1], "BLOCK": block},
        num_warps=4,
    )
    return shift, delta, turns


@triton.jit(do_not_specialize=["heads", "queries", "padded"])
def _rows_kernel(
    output,
    d_output,
    lse,
    shift,
    delta,
    turns,
    output_strides,
    d_output_strides,
    heads,
    queries,
    padded,
    unit,
    ROWS: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0) * ROWS
    sequence = tl.program_id(1)
    rows = row + tl.arange(0, ROWS)
    output = head_of(output, output_strides, sequence, heads)
    d_output = head_of(d_output, d_output_strides, sequence, heads)
    output_tile = load_tile(output, output_strides, row, queries, ROWS, D_HEAD, BLOCK, True).to(
        tl.float32
    )
    d_output_tile = load_tile(
        d_output, d_output_strides, row, queries, ROWS, D_HEAD, BLOCK, True
    ).to(tl.float32)
    lse_rows = tl.load(lse + sequence * queries + rows, rows < queries, float("-inf"))
    shift_rows = tl.where(lse_rows == float("-inf"), float("inf"), lse_rows * unit)
    tl.store(shift + sequence * padded + rows, shift_rows)
    tl.store(delta + sequence * padded + rows, tl.sum(output_tile * d_output_tile, 1))
    # Every 64 rows have a counter; a tile may have half of these rows.
    if row % 64 == 0:
        tl.store(turns + (sequence * padded + row) // 64 + tl.arange(0, (ROWS + 63) // 64), 0)
