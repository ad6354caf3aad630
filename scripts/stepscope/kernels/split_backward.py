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

from stepscope.kernels.launching import Kernel, Plan, Slot
from stepscope.kernels.masks import Mask
from stepscope.kernels.operands import LOG2_E, block_of, rounded_up, sharing, sizes
from stepscope.kernels.pointers import head_of, load_tile, store_tile
from stepscope.kernels.rows import PADDED_TO, rows_of
from stepscope.kernels.seen import WHOLE, keys_seen, queries_seeing, see, seen_by
from stepscope.kernels.tiles import Tiles

# Triton's interpreter multiplies tiles of bf16 as if they held integers.
_INTERPRETED = tl.constexpr(knobs.runtime.interpret)
_ELEMENTS_OF_A_TILE = 4096


def add_to(plan: Plan, mask: Mask, tiles_of_keys: Tiles, tiles_of_queries: Tiles) -> None:
    """As that of `portable_backward`, in fp32."""
    q, k, v, output, lse, d_output, d_q, d_k, d_v = plan.slots
    sequences, heads, queries, keys = sizes(q, k)
    shift, delta, _ = rows_of(plan, output, d_output, lse)
    parts = [split(plan, x) for x in (q, k, v, d_output)]
    scale = q.shape[-1] ** -0.5
    shared_by = sharing(q, k)

    def launch(kernel: Kernel, programs: int, sequences: int, gradients: tuple, tiles: Tiles):
        strides = [x.strides[:-1] for x in gradients]
        lengths = (heads, queries, keys, mask.offset, mask.window)
        padded = (shift.shape[1], parts[1].shape[1])
        plan.launch(
            kernel,
            (programs, sequences),
            (
                *parts,
                *gradients,
                shift,
                delta,
                *strides,
                *lengths,
                *padded,
                scale,
                scale * LOG2_E,
            ),
            {
                "QUERIES": tiles.queries,
                "KEYS": tiles.keys,
                "D_HEAD": q.shape[-1],
                "BLOCK": block_of(q.shape[-1]),
                "SHARING": shared_by,
                "CAUSAL": mask.is_causal,
                "WINDOWED": mask.window > 0,
            },
            num_warps=tiles.warps,
            num_stages=tiles.stages,
        )

    key_tiles = triton.cdiv(keys, tiles_of_keys.keys)
    launch(_keys_kernel, key_tiles, sequences // shared_by, (d_k, d_v), tiles_of_keys)
    query_tiles = triton.cdiv(queries, tiles_of_queries.queries)
    launch(_queries_kernel, query_tiles, sequences, (d_q,), tiles_of_queries)


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
    ROWS: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK: tl.constexpr,
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
def tile_of(parts, sequence, padded, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Pointers to the high parts of the first rows of a sequence, (ROWS, BLOCK)."""
    head = parts + sequence.to(tl.int64) * padded * (3 * BLOCK)
    return head + tl.arange(0, ROWS)[:, None] * (3 * BLOCK) + tl.arange(0, BLOCK)[None, :]


@triton.jit
def _load(tile, row, BLOCK: tl.constexpr):
    """High, mid and low parts of a tile that begins with this row."""
    tile += tl.cast(row, tl.int64) * (3 * BLOCK)
    return tl.load(tile), tl.load(tile + BLOCK), tl.load(tile + 2 * BLOCK)


@triton.jit
def _product(a_high, a_mid, a_low, b_high, b_mid, b_low):
    """a b, the smallest products first.

    Tensor cores cut off what they add to a sum below its last bit, so that an error of one sign
    grows with the number of additions: sums over many tiles add these by ordinary additions, which
    round.
    """
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


# What varies from call to call and would change the code, but not its speed.
@triton.jit(
    do_not_specialize=["heads", "queries", "keys", "offset", "window", "padded", "padded_keys"]
)
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
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK: tl.constexpr,
    SHARING: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
):
    """Gradients of a tile of keys and values, with the scores transposed: (keys, queries)."""
    # The first keys are seen by the most queries: they go first.
    column = tl.program_id(0) * KEYS
    sequence = tl.program_id(1)
    d_k = head_of(d_k, d_k_strides, sequence, heads // SHARING)
    d_v = head_of(d_v, d_v_strides, sequence, heads // SHARING)
    columns = column + tl.arange(0, KEYS)
    k_high, k_mid, k_low = _load(tile_of(k, sequence, padded_keys, KEYS, BLOCK), column, BLOCK)
    v_high, v_mid, v_low = _load(tile_of(v, sequence, padded_keys, KEYS, BLOCK), column, BLOCK)
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
                d_k_tile, d_v_tile = _add_queries(
                    d_k_tile,
                    d_v_tile,
                    k_high,
                    k_mid,
                    k_low,
                    v_high,
                    v_mid,
                    v_low,
                    q_tile,
                    d_output_tile,
                    shift_head,
                    delta_head,
                    row,
                    columns,
                    offset,
                    window,
                    scale_log2,
                    QUERIES,
                    BLOCK,
                    WINDOWED,
                    part != WHOLE,
                )

    store_tile(d_k, d_k_strides, column, keys, d_k_tile * scale, KEYS, D_HEAD, BLOCK)
    store_tile(d_v, d_v_strides, column, keys, d_v_tile, KEYS, D_HEAD, BLOCK)


@triton.jit
def _add_queries(
    d_k_tile,
    d_v_tile,
    k_high,
    k_mid,
    k_low,
    v_high,
    v_mid,
    v_low,
    q_tile,
    d_output_tile,
    shift,
    delta,
    row,
    columns,
    offset,
    window,
    scale_log2,
    QUERIES: tl.constexpr,
    BLOCK: tl.constexpr,
    WINDOWED: tl.constexpr,
    MASKED: tl.constexpr,
):
    """What one tile of queries adds to the gradients of a tile of keys and values, each (keys,
    d_head)."""
    rows = row + tl.arange(0, QUERIES)
    q_high, q_mid, q_low = _load(q_tile, row, BLOCK)
    scores = _product(k_high, k_mid, k_low, q_high.T, q_mid.T, q_low.T)
    weights = tl.exp2((scores - tl.load(shift + rows)[None, :]) * scale_log2)
    if MASKED:
        weights = tl.where(seen_by(columns, rows + offset, window, WINDOWED), weights, 0.0)
    o_high, o_mid, o_low = _load(d_output_tile, row, BLOCK)
    high, mid, low = parts_of(weights)
    d_v_tile += _product(high, mid, low, o_high, o_mid, o_low)
    d_weights = _product(v_high, v_mid, v_low, o_high.T, o_mid.T, o_low.T)
    d_scores = weights * (d_weights - tl.load(delta + rows)[None, :])
    high, mid, low = parts_of(d_scores)
    d_k_tile += _product(high, mid, low, q_high, q_mid, q_low)
    return d_k_tile, d_v_tile


@triton.jit(
    do_not_specialize=["heads", "queries", "keys", "offset", "window", "padded", "padded_keys"]
)
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
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK: tl.constexpr,
    SHARING: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
):
    """Gradient of a tile of queries."""
    row = (tl.num_programs(0) - 1 - tl.program_id(0)) * QUERIES
    sequence = tl.program_id(1)
    k_tile = tile_of(k, sequence // SHARING, padded_keys, KEYS, BLOCK)
    v_tile = tile_of(v, sequence // SHARING, padded_keys, KEYS, BLOCK)
    d_q = head_of(d_q, d_q_strides, sequence, heads)
    rows = row + tl.arange(0, QUERIES)
    q_high, q_mid, q_low = _load(tile_of(q, sequence, padded, QUERIES, BLOCK), row, BLOCK)
    o_high, o_mid, o_low = _load(tile_of(d_output, sequence, padded, QUERIES, BLOCK), row, BLOCK)
    shift_rows = tl.load(shift + sequence * padded + rows)
    delta_rows = tl.load(delta + sequence * padded + rows)
    d_q_tile = tl.zeros([QUERIES, BLOCK], tl.float32)

    positions = rows + offset
    begins, ends = keys_seen(row + offset, keys, window, QUERIES, KEYS, CAUSAL, WINDOWED)
    for part in tl.static_range(0 if WINDOWED else 1, 3):
        for column in range(begins[part], ends[part], KEYS):
            d_q_tile = _add_keys(
                d_q_tile,
                q_high,
                q_mid,
                q_low,
                o_high,
                o_mid,
                o_low,
                shift_rows,
                delta_rows,
                k_tile,
                v_tile,
                positions,
                column,
                keys,
                window,
                scale_log2,
                KEYS,
                BLOCK,
                CAUSAL,
                WINDOWED,
                part != WHOLE,
            )

    store_tile(d_q, d_q_strides, row, queries, d_q_tile * scale, QUERIES, D_HEAD, BLOCK)


@triton.jit
def _add_keys(
    d_q_tile,
    q_high,
    q_mid,
    q_low,
    o_high,
    o_mid,
    o_low,
    shift_rows,
    delta_rows,
    k_tile,
    v_tile,
    positions,
    column,
    keys,
    window,
    scale_log2,
    KEYS: tl.constexpr,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
    MASKED: tl.constexpr,
):
    """What one tile of keys adds to the gradient of a tile of queries, (queries, d_head)."""
    k_high, k_mid, k_low = _load(k_tile, column, BLOCK)
    scores = _product(q_high, q_mid, q_low, k_high.T, k_mid.T, k_low.T)
    weights = tl.exp2((scores - shift_rows[:, None]) * scale_log2)
    if MASKED:
        seen = see(positions, column + tl.arange(0, KEYS), keys, window, CAUSAL, WINDOWED)
        weights = tl.where(seen, weights, 0.0)
    v_high, v_mid, v_low = _load(v_tile, column, BLOCK)
    d_weights = _product(o_high, o_mid, o_low, v_high.T, v_mid.T, v_low.T)
    d_scores = weights * (d_weights - delta_rows[:, None])
    high, mid, low = parts_of(d_scores)
    return d_q_tile + _product(high, mid, low, k_high, k_mid, k_low)
