"""Backward pass of FlashAttention-2 (Dao 2023, algorithm 2) in Triton for fp32 that is multiplied
in parts.

x = high + mid + low, three bf16 of 8 bits each, and a product of two is the sum of the six products
of parts that matter (Henry et al. 2019). Where the kernels of `portable_backward` take every tile
of Q, K, V and dO apart again in each step, here a kernel before them does so once, into a workspace
of 1.5 times the four tensors; the others load parts that the tensor cores read from shared memory
as they are. Only weights and gradients of scores are taken apart within.

As there, one kernel goes over keys and one over queries, 7 matrix products, and the same inputs
give the same bits.
"""

import torch
import triton
import triton.language as tl
from triton import knobs
from triton.language import constexpr

from stepscope.kernels.launching import Plan, Slot
from stepscope.kernels.masks import Mask
from stepscope.kernels.operands import block_of, rounded_up
from stepscope.kernels.pointers import VARYING, head_of, load_tile, store_tile
from stepscope.kernels.portable_backward import add_both
from stepscope.kernels.rows import PADDED_TO, rows_of
from stepscope.kernels.seen import WHOLE, keys_seen, queries_seeing, see, seen_by
from stepscope.kernels.tiles import Tiles

# Triton's interpreter multiplies tiles of bf16 as if they held integers.
_INTERPRETED = constexpr(knobs.runtime.interpret)
_ELEMENTS_OF_A_TILE = 4096


def add_to(plan: Plan, mask: Mask, tiles: tuple[Tiles, Tiles]) -> None:
    """As that of `portable_backward`, in fp32."""
    q, k, v, output, lse, d_output, *_ = plan.slots
    shift, delta, _ = rows_of(plan, output, d_output, lse)
    parts = [split(plan, x) for x in (q, k, v, d_output)]
    kernels = (_keys_kernel, _queries_kernel)
    add_both(plan, mask, kernels, tiles, parts, shift, delta, parts[1].shape[1])


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
    tile = tile_of(parts, sequence, padded, ROWS, BLOCK) + row * (3 * BLOCK)
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
def tile_of(parts, sequence, padded, ROWS: constexpr, BLOCK: constexpr):
    """Pointers to the high parts of the first rows of a sequence, (ROWS, BLOCK)."""
    head = parts + sequence.to(tl.int64) * padded * (3 * BLOCK)
    return head + tl.arange(0, ROWS)[:, None] * (3 * BLOCK) + tl.arange(0, BLOCK)[None, :]


@triton.jit
def _load(tile, row, BLOCK: constexpr):
    """(high, mid, low) of a tile that begins with this row."""
    tile += tl.cast(row, tl.int64) * (3 * BLOCK)
    return tl.load(tile), tl.load(tile + BLOCK), tl.load(tile + 2 * BLOCK)


@triton.jit
def _transposed(parts):
    high, mid, low = parts
    return high.T, mid.T, low.T


@triton.jit
def _product(a, b):
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


@triton.jit(do_not_specialize=[*VARYING, "padded", "padded_keys"])
def _keys_kernel(
    q,
    k,
    v,
    d_output,
    d_k,
    d_v,
    shift,
    delta,
    d_k_strides,
    d_v_strides,
    heads,
    queries,
    keys,
    offset,
    window,
    padded,
    padded_keys,
    scale,
    scale_log2,
    QUERIES: constexpr,
    KEYS: constexpr,
    D_HEAD: constexpr,
    BLOCK: constexpr,
    SHARING: constexpr,
    CAUSAL: constexpr,
    WINDOWED: constexpr,
):
    """Gradients of a tile of keys and values, with the scores transposed: (keys, queries)."""
    # The first keys are seen by the most queries: they go first.
    column = tl.program_id(0) * KEYS
    sequence = tl.program_id(1)
    d_k = head_of(d_k, d_k_strides, sequence, heads // SHARING)
    d_v = head_of(d_v, d_v_strides, sequence, heads // SHARING)
    columns = column + tl.arange(0, KEYS)
    k_parts = _load(tile_of(k, sequence, padded_keys, KEYS, BLOCK), column, BLOCK)
    v_parts = _load(tile_of(v, sequence, padded_keys, KEYS, BLOCK), column, BLOCK)
    d_k_tile = tl.zeros([KEYS, BLOCK], tl.float32)
    d_v_tile = tl.zeros([KEYS, BLOCK], tl.float32)

    # Queries beyond the last one have a shift of infinity, and no weights.
    begins, ends = queries_seeing(column, queries, offset, window, QUERIES, KEYS, CAUSAL, WINDOWED)
    for member in range(SHARING):
        query_sequence = sequence * SHARING + member
        q_tile = tile_of(q, query_sequence, padded, QUERIES, BLOCK)
        d_output_tile = tile_of(d_output, query_sequence, padded, QUERIES, BLOCK)
        shift_head = shift + query_sequence * padded
        delta_head = delta + query_sequence * padded
        for part in tl.static_range(3 if WINDOWED else 2):
            for row in range(begins[part], ends[part], QUERIES):
                rows = row + tl.arange(0, QUERIES)
                q_parts = _load(q_tile, row, BLOCK)

                # The weights of the forward pass once more.
                scores = _product(k_parts, _transposed(q_parts))
                shift_rows = tl.load(shift_head + rows)
                weights = tl.exp2((scores - shift_rows[None, :]) * scale_log2)
                if part != WHOLE:
                    seen = seen_by(columns, rows + offset, window, WINDOWED)
                    weights = tl.where(seen, weights, 0.0)

                d_output_parts = _load(d_output_tile, row, BLOCK)
                d_v_tile += _product(parts_of(weights), d_output_parts)

                # Through the softmax to the scores, and to the keys.
                d_weights = _product(v_parts, _transposed(d_output_parts))
                d_scores = weights * (d_weights - tl.load(delta_head + rows)[None, :])
                d_k_tile += _product(parts_of(d_scores), q_parts)

    store_tile(d_k, d_k_strides, column, keys, d_k_tile * scale, KEYS, D_HEAD, BLOCK)
    store_tile(d_v, d_v_strides, column, keys, d_v_tile, KEYS, D_HEAD, BLOCK)


@triton.jit(do_not_specialize=[*VARYING, "padded", "padded_keys"])
def _queries_kernel(
    q,
    k,
    v,
    d_output,
    d_q,
    shift,
    delta,
    d_q_strides,
    heads,
    queries,
    keys,
    offset,
    window,
    padded,
    padded_keys,
    scale,
    scale_log2,
    QUERIES: constexpr,
    KEYS: constexpr,
    D_HEAD: constexpr,
    BLOCK: constexpr,
    SHARING: constexpr,
    CAUSAL: constexpr,
    WINDOWED: constexpr,
):
    """Gradient of a tile of queries."""
    row = (tl.num_programs(0) - 1 - tl.program_id(0)) * QUERIES
    sequence = tl.program_id(1)
    k_tile = tile_of(k, sequence // SHARING, padded_keys, KEYS, BLOCK)
    v_tile = tile_of(v, sequence // SHARING, padded_keys, KEYS, BLOCK)
    d_q = head_of(d_q, d_q_strides, sequence, heads)
    rows = row + tl.arange(0, QUERIES)
    q_parts = _load(tile_of(q, sequence, padded, QUERIES, BLOCK), row, BLOCK)
    d_output_parts = _load(tile_of(d_output, sequence, padded, QUERIES, BLOCK), row, BLOCK)
    shift_rows = tl.load(shift + sequence * padded + rows)
    delta_rows = tl.load(delta + sequence * padded + rows)
    d_q_tile = tl.zeros([QUERIES, BLOCK], tl.float32)

    positions = rows + offset
    begins, ends = keys_seen(row + offset, keys, window, QUERIES, KEYS, CAUSAL, WINDOWED)
    for part in tl.static_range(0 if WINDOWED else 1, 3):
        for column in range(begins[part], ends[part], KEYS):
            k_parts = _load(k_tile, column, BLOCK)

            # The weights of the forward pass once more.
            scores = _product(q_parts, _transposed(k_parts))
            weights = tl.exp2((scores - shift_rows[:, None]) * scale_log2)
            if part != WHOLE:
                seen = see(positions, column + tl.arange(0, KEYS), keys, window, CAUSAL, WINDOWED)
                weights = tl.where(seen, weights, 0.0)

            # Through the softmax to the scores, and to the queries.
            d_weights = _product(d_output_parts, _transposed(_load(v_tile, column, BLOCK)))
            d_scores = weights * (d_weights - delta_rows[:, None])
            d_q_tile += _product(parts_of(d_scores), k_parts)

    store_tile(d_q, d_q_strides, row, queries, d_q_tile * scale, QUERIES, D_HEAD, BLOCK)
