"""Forward pass of FlashAttention-2 (Dao 2023, algorithm 1) in Triton, for any GPU that Triton runs
on."""

import triton
import triton.language as tl
from triton.language import constexpr

from .launching import Plan
from .masks import Mask
from .operands import LOG2_E, sizes
from .pointers import VARYING, head_of, load_tile, store_tile
from .seen import WHOLE, keys_seen, see
from .tiles import Tiles, input_precision, launch

LN_2 = constexpr(0.6931471805599453)


def add_to(plan: Plan, mask: Mask, tiles: Tiles) -> None:
    """From q, k, v to output, shaped like q, and log-sum-exp, (batch, heads, queries) fp32; all 4D
    with contiguous rows."""
    q, k, v, output, lse = plan.slots
    sequences, heads, queries, keys = sizes(q, k)
    tensors = q, k, v, output
    launch(
        plan,
        _forward_kernel,
        (triton.cdiv(queries, tiles.queries), sequences),
        (
            *tensors,
            lse,
            *(x.strides[:-1] for x in tensors),
            heads,
            queries,
            keys,
            mask.offset,
            mask.window,
            q.shape[-1] ** -0.5 * LOG2_E,
        ),
        mask,
        tiles,
        PRECISION=input_precision(q.dtype, tiles),
    )


@triton.jit(do_not_specialize=VARYING)
def _forward_kernel(
    q,
    k,
    v,
    output,
    lse,
    q_strides,
    k_strides,
    v_strides,
    output_strides,
    heads,
    queries,
    keys,
    offset,
    window,
    scale_log2,
    QUERIES: constexpr,
    KEYS: constexpr,
    D_HEAD: constexpr,
    BLOCK: constexpr,
    SHARING: constexpr,
    CAUSAL: constexpr,
    WINDOWED: constexpr,
    PRECISION: constexpr,
):
    # The last queries see the most keys: they go first, so that no long program is left when all
    # others are done.
    row = (tl.num_programs(0) - 1 - tl.program_id(0)) * QUERIES
    sequence = tl.program_id(1)
    q = head_of(q, q_strides, sequence, heads)
    k = head_of(k, k_strides, sequence // SHARING, heads // SHARING)
    v = head_of(v, v_strides, sequence // SHARING, heads // SHARING)
    output = head_of(output, output_strides, sequence, heads)
    q_tile = load_tile(q, q_strides, row, queries, QUERIES, D_HEAD, BLOCK, True)
    rows = row + tl.arange(0, QUERIES)
    # In units of log2: with the scale times log2(e) in one factor an exponential is one
    # multiply-add and one instruction of the special function unit.
    maximum = tl.full([QUERIES], float("-inf"), tl.float32)
    normaliser = tl.zeros([QUERIES], tl.float32)
    weighted = tl.zeros([QUERIES, BLOCK], tl.float32)

    positions = rows + offset
    begins, ends = keys_seen(row + offset, keys, window, QUERIES, KEYS, CAUSAL, WINDOWED)
    for part in tl.static_range(0 if WINDOWED else 1, 3):
        for column in range(begins[part], ends[part], KEYS):
            # Scores of one tile of keys, each that the mask hides gone.
            k_tile = load_tile(k, k_strides, column, keys, KEYS, D_HEAD, BLOCK, part != WHOLE)
            scores = tl.dot(q_tile, k_tile.T, input_precision=PRECISION)
            if part != WHOLE:
                seen = see(positions, column + tl.arange(0, KEYS), keys, window, CAUSAL, WINDOWED)
                scores = tl.where(seen, scores, float("-inf"))

            # Weights by the largest score so far, and what that makes of the sums before.
            new_maximum = tl.maximum(maximum, tl.max(scores, 1) * scale_log2)
            # As long as a row has seen nothing but -inf, -inf minus -inf would be NaN.
            shift = tl.where(new_maximum == float("-inf"), 0, new_maximum)
            weights = tl.exp2(scores * scale_log2 - shift[:, None])
            correction = tl.exp2(maximum - shift)
            normaliser = normaliser * correction + tl.sum(weights, 1)

            v_tile = load_tile(v, v_strides, column, keys, KEYS, D_HEAD, BLOCK, part != WHOLE)
            weighted = weighted * correction[:, None]
            weighted = tl.dot(weights.to(v_tile.dtype), v_tile, weighted, input_precision=PRECISION)
            maximum = new_maximum

    # A row of which every score is -inf has no weights; its output is 0.
    weighted = weighted / tl.where(normaliser == 0, 1, normaliser)[:, None]
    store_tile(output, output_strides, row, queries, weighted, QUERIES, D_HEAD, BLOCK)
    tl.store(
        lse + sequence * queries + rows, (maximum + tl.log2(normaliser)) * LN_2, rows < queries
    )
