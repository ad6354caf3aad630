"""Backward pass of FlashAttention-2 (Dao 2023, algorithm 2) in Triton, for any GPU that Triton runs
on.

Two kernels: one goes over keys for the gradients of K and V, one over queries for that of Q. Each
sum stays in one program, so that nothing is added by several in whatever order they come: the same
inputs give the same bits. The price is that scores and dO V^T are computed twice, 7 matrix products
instead of 5.
"""

import triton
import triton.language as tl

from stepscope.kernels.launching import Kernel, Plan
from stepscope.kernels.masks import Mask
from stepscope.kernels.operands import LOG2_E, block_of, sharing, sizes
from stepscope.kernels.pointers import head_of, load_tile, store_tile
from stepscope.kernels.rows import rows_of
from stepscope.kernels.seen import WHOLE, keys_seen, queries_seeing, see, seen_by
from stepscope.kernels.tiles import Tiles, input_precision


def add_to(plan: Plan, mask: Mask, tiles_of_keys: Tiles, tiles_of_queries: Tiles) -> None:
    """From q, k, v, output, log-sum-exp and dO to the gradients of q, k and v; all but the
    log-sum-exp, (batch, heads, queries), are 4D with contiguous rows."""
    q, k, v, output, lse, d_output, d_q, d_k, d_v = plan.slots
    sequences, heads, queries, keys = sizes(q, k)
    shift, delta, _ = rows_of(plan, output, d_output, lse)
    scale = q.shape[-1] ** -0.5
    shared_by = sharing(q, k)

    def launch(kernel: Kernel, programs: int, sequences: int, gradients: tuple, tiles: Tiles):
        tensors = q, k, v, d_output, *gradients
        strides = [x.strides[:-1] for x in tensors]
        numbers = (heads, queries, keys, mask.offset, mask.window, shift.shape[1])
        plan.launch(
            kernel,
            (programs, sequences),
            (*tensors, shift, delta, *strides, *numbers, scale, scale * LOG2_E),
            {
                "QUERIES": tiles.queries,
                "KEYS": tiles.keys,
                "D_HEAD": q.shape[-1],
                "BLOCK": block_of(q.shape[-1]),
                "SHARING": shared_by,
                "CAUSAL": mask.is_causal,
                "WINDOWED": mask.window > 0,
                "PRECISION": input_precision(q.dtype, tiles),
            },
            num_warps=tiles.warps,
            num_stages=tiles.stages,
        )

    key_tiles = triton.cdiv(keys, tiles_of_keys.keys)
    launch(_keys_kernel, key_tiles, sequences // shared_by, (d_k, d_v), tiles_of_keys)
    query_tiles = triton.cdiv(queries, tiles_of_queries.queries)
    launch(_queries_kernel, query_tiles, sequences, (d_q,), tiles_of_queries)


# What varies from call to call and would change the code, but not its speed.
@triton.jit(do_not_specialize=["heads", "queries", "keys", "offset", "window"])
def _keys_kernel(
    q,
    k,
    v,
    d_output,
    d_k,
    d_v,
    shift,
    delta,
    q_strides,
    k_strides,
    v_strides,
    d_output_strides,
    d_k_strides,
    d_v_strides,
    heads,
    queries,
    keys,
    offset,
    window,
    padded,
    scale,
    scale_log2,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK: tl.constexpr,
    SHARING: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Gradients of a tile of keys and values, with the scores transposed: (keys, queries)."""
    # The first keys are seen by the most queries: they go first.
    column = tl.program_id(0) * KEYS
    sequence = tl.program_id(1)
    k = head_of(k, k_strides, sequence, heads // SHARING)
    v = head_of(v, v_strides, sequence, heads // SHARING)
    d_k = head_of(d_k, d_k_strides, sequence, heads // SHARING)
    d_v = head_of(d_v, d_v_strides, sequence, heads // SHARING)
    columns = column + tl.arange(0, KEYS)
    k_tile = load_tile(k, k_strides, column, keys, KEYS, D_HEAD, BLOCK, True)
    v_tile = load_tile(v, v_strides, column, keys, KEYS, D_HEAD, BLOCK, True)
    d_k_tile = tl.zeros([KEYS, BLOCK], tl.float32)
    d_v_tile = tl.zeros([KEYS, BLOCK], tl.float32)

    begins, ends = queries_seeing(column, queries, offset, window, QUERIES, KEYS, CAUSAL, WINDOWED)
    for member in range(SHARING):
        query_sequence = sequence * SHARING + member
        q_head = head_of(q, q_strides, query_sequence, heads)
        d_output_head = head_of(d_output, d_output_strides, query_sequence, heads)
        shift_head = shift + query_sequence * padded
        delta_head = delta + query_sequence * padded
        for part in tl.static_range(3 if WINDOWED else 2):
            for row in range(begins[part], ends[part], QUERIES):
                d_k_tile, d_v_tile = _add_queries(
                    d_k_tile,
                    d_v_tile,
                    k_tile,
                    v_tile,
                    q_head,
                    d_output_head,
                    q_strides,
                    d_output_strides,
                    shift_head,
                    delta_head,
                    row,
                    columns,
                    queries,
                    offset,
                    window,
                    scale_log2,
                    QUERIES,
                    D_HEAD,
                    BLOCK,
                    WINDOWED,
                    part != WHOLE,
                    PRECISION,
                )

    store_tile(d_k, d_k_strides, column, keys, d_k_tile * scale, KEYS, D_HEAD, BLOCK)
    store_tile(d_v, d_v_strides, column, keys, d_v_tile, KEYS, D_HEAD, BLOCK)


@triton.jit
def _add_queries(
    d_k_tile,
    d_v_tile,
    k_tile,
    v_tile,
    q,
    d_output,
    q_strides,
    d_output_strides,
    shift,
    delta,
    row,
    columns,
    queries,
    offset,
    window,
    scale_log2,
    QUERIES: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK: tl.constexpr,
    WINDOWED: tl.constexpr,
    MASKED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """What one tile of queries adds to the gradients of a tile of keys and values, each (keys,
    d_head)."""
    rows = row + tl.arange(0, QUERIES)
    # Rows beyond the last query are cut in every tile: a program meets the last one, masked or not.
    q_tile = load_tile(q, q_strides, row, queries, QUERIES, D_HEAD, BLOCK, True)
    scores = tl.dot(k_tile, q_tile.T, input_precision=PRECISION)
    weights = tl.exp2((scores - tl.load(shift + rows)[None, :]) * scale_log2)
    if MASKED:
        weights = tl.where(seen_by(columns, rows + offset, window, WINDOWED), weights, 0.0)
    d_output_tile = load_tile(
        d_output, d_output_strides, row, queries, QUERIES, D_HEAD, BLOCK, True
    )
    d_v_tile = tl.dot(
        weights.to(d_output_tile.dtype), d_output_tile, d_v_tile, input_precision=PRECISION
    )
    d_weights = tl.dot(v_tile, d_output_tile.T, input_precision=PRECISION)
    d_scores = weights * (d_weights - tl.load(delta + rows)[None, :])
    d_k_tile = tl.dot(d_scores.to(q_tile.dtype), q_tile, d_k_tile, input_precision=PRECISION)
    return d_k_tile, d_v_tile


@triton.jit(do_not_specialize=["heads", "queries", "keys", "offset", "window"])
def _queries_kernel(
    q,
    k,
    v,
    d_output,
    d_q,
    shift,
    delta,
    q_strides,
    k_strides,
    v_strides,
    d_output_strides,
    d_q_strides,
    heads,
    queries,
    keys,
    offset,
    window,
    padded,
    scale,
    scale_log2,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK: tl.constexpr,
    SHARING: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Gradient of a tile of queries."""
    row = (tl.num_programs(0) - 1 - tl.program_id(0)) * QUERIES
    sequence = tl.program_id(1)
    q = head_of(q, q_strides, sequence, heads)
    k = head_of(k, k_strides, sequence // SHARING, heads // SHARING)
    v = head_of(v, v_strides, sequence // SHARING, heads // SHARING)
    d_output = head_of(d_output, d_output_strides, sequence, heads)
    d_q = head_of(d_q, d_q_strides, sequence, heads)
    rows = row + tl.arange(0, QUERIES)
    q_tile = load_tile(q, q_strides, row, queries, QUERIES, D_HEAD, BLOCK, True)
    d_output_tile = load_tile(
        d_output, d_output_strides, row, queries, QUERIES, D_HEAD, BLOCK, True
    )
    shift_rows = tl.load(shift + sequence * padded + rows)
    delta_rows = tl.load(delta + sequence * padded + rows)
    d_q_tile = tl.zeros([QUERIES, BLOCK], tl.float32)

    positions = rows + offset
    begins, ends = keys_seen(row + offset, keys, window, QUERIES, KEYS, CAUSAL, WINDOWED)
    for part in tl.static_range(0 if WINDOWED else 1, 3):
        for column in range(begins[part], ends[part], KEYS):
            d_q_tile = _add_keys(
                d_q_tile,
                q_tile,
                d_output_tile,
                shift_rows,
                delta_rows,
                k,
                v,
                k_strides,
                v_strides,
                positions,
                column,
                keys,
                window,
                scale_log2,
                KEYS,
                D_HEAD,
                BLOCK,
                CAUSAL,
                WINDOWED,
                part != WHOLE,
                PRECISION,
            )

    store_tile(d_q, d_q_strides, row, queries, d_q_tile * scale, QUERIES, D_HEAD, BLOCK)


@triton.jit
def _add_keys(
    d_q_tile,
    q_tile,
    d_output_tile,
    shift_rows,
    delta_rows,
    k,
    v,
    k_strides,
    v_strides,
    positions,
    column,
    keys,
    window,
    scale_log2,
    KEYS: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr,
    MASKED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """What one tile of keys adds to the gradient of a tile of queries, (queries, d_head)."""
    k_tile = load_tile(k, k_strides, column, keys, KEYS, D_HEAD, BLOCK, MASKED)
    v_tile = load_tile(v, v_strides, column, keys, KEYS, D_HEAD, BLOCK, MASKED)
    scores = tl.dot(q_tile, k_tile.T, input_precision=PRECISION)
    weights = tl.exp2((scores - shift_rows[:, None]) * scale_log2)
    if MASKED:
        seen = see(positions, column + tl.arange(0, KEYS), keys, window, CAUSAL, WINDOWED)
        weights = tl.where(seen, weights, 0.0)
    d_weights = tl.dot(d_output_tile, v_tile.T, input_precision=PRECISION)
    d_scores = weights * (d_weights - delta_rows[:, None])
    return tl.dot(d_scores.to(k_tile.dtype), k_tile, d_q_tile, input_precision=PRECISION)
