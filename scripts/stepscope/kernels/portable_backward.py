"""Backward pass of FlashAttention-2 (Dao 2023, algorithm 2) in Triton, for any GPU that Triton runs
on.

Two kernels: one goes over keys for the gradients of K and V, one over queries for that of Q. Each
sum stays in one program, so that nothing is added by several in whatever order they come: the same
inputs give the same bits. The price is that scores and dO V^T are computed twice, 7 matrix products
instead of 5.
"""

from collections.abc import Sequence

import triton
import triton.language as tl
from triton.language import constexpr

from stepscope.kernels.launching import Kernel, Plan, Slot
from stepscope.kernels.masks import Mask
from stepscope.kernels.operands import LOG2_E, sharing, sizes
from stepscope.kernels.pointers import VARYING, head_of, load_tile, store_tile
from stepscope.kernels.rows import rows_of
from stepscope.kernels.seen import WHOLE, keys_seen, queries_seeing, see, seen_by
from stepscope.kernels.tiles import Tiles, input_precision, launch


def add_to(plan: Plan, mask: Mask, tiles: tuple[Tiles, Tiles]) -> None:
    """From q, k, v, output, log-sum-exp and dO to the gradients of q, k and v; all but the
    log-sum-exp, (batch, heads, queries), are 4D with contiguous rows. tiles: of the kernel that
    goes over keys, and of the one over queries."""
    q, k, v, output, lse, d_output, *_ = plan.slots
    shift, delta, _ = rows_of(plan, output, d_output, lse)
    kernels = (_keys_kernel, _queries_kernel)
    add_both(plan, mask, kernels, tiles, (q, k, v, d_output), shift, delta)


def add_both(
    plan: Plan,
    mask: Mask,
    kernels: tuple[Kernel, Kernel],
    tiles: tuple[Tiles, Tiles],
    read: Sequence[Slot],
    shift: Slot,
    delta: Slot,
    *padded_keys: int,
) -> None:
    """A kernel that goes over keys, for the gradients of k and v, and one over queries, for that of
    q, as tensors of the plan.

    read: q, k, v and dO as both kernels read them. shift, delta: see `rows_of`. padded_keys: given
    where they are read in parts, the number to which those of k and v are padded.
    """
    q, k, _v, _output, _lse, _d_output, d_q, d_k, d_v, *_ = plan.slots
    sequences, heads, queries, keys = sizes(q, k)
    padded = (shift.shape[1], *padded_keys)
    scale = q.shape[-1] ** -0.5
    numbers = (heads, queries, keys, mask.offset, mask.window, *padded, scale, scale * LOG2_E)
    of_keys, of_queries = tiles
    key_programs = (triton.cdiv(keys, of_keys.keys), sequences // sharing(q, k))
    query_programs = (triton.cdiv(queries, of_queries.queries), sequences)
    for kernel, own, programs, gradients in (
        (kernels[0], of_keys, key_programs, (d_k, d_v)),
        (kernels[1], of_queries, query_programs, (d_q,)),
    ):
        tensors = (*read, *gradients)
        strides = [x.strides[:-1] for x in (gradients if padded_keys else tensors)]
        constants = {} if padded_keys else {"PRECISION": input_precision(q.dtype, own)}
        arguments = (*tensors, shift, delta, *strides, *numbers)
        launch(plan, kernel, programs, arguments, mask, own, **constants)


@triton.jit(do_not_specialize=VARYING)
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
    QUERIES: constexpr,
    KEYS: constexpr,
    D_HEAD: constexpr,
    BLOCK: constexpr,
    SHARING: constexpr,
    CAUSAL: constexpr,
    WINDOWED: constexpr,
    PRECISION: constexpr,
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
                rows = row + tl.arange(0, QUERIES)
                # Rows beyond the last query are cut in every tile: a program meets the last one,
                # masked or not.
                q_tile = load_tile(q_head, q_strides, row, queries, QUERIES, D_HEAD, BLOCK, True)

                # The weights of the forward pass once more.
                scores = tl.dot(k_tile, q_tile.T, input_precision=PRECISION)
                shift_rows = tl.load(shift_head + rows)
                weights = tl.exp2((scores - shift_rows[None, :]) * scale_log2)
                if part != WHOLE:
                    seen = seen_by(columns, rows + offset, window, WINDOWED)
                    weights = tl.where(seen, weights, 0.0)
                d_output_tile = load_tile(
                    d_output_head, d_output_strides, row, queries, QUERIES, D_HEAD, BLOCK, True
                )

                # Tensor cores want both factors in one type.
                narrow_weights = weights.to(d_output_tile.dtype)
                d_v_tile = tl.dot(
                    narrow_weights,
                    d_output_tile,
                    d_v_tile,
                    input_precision=PRECISION,
                )

                # Through the softmax to the scores, and to the keys.
                d_weights = tl.dot(v_tile, d_output_tile.T, input_precision=PRECISION)
                d_scores = weights * (d_weights - tl.load(delta_head + rows)[None, :])
                narrow_d_scores = d_scores.to(q_tile.dtype)
                d_k_tile = tl.dot(
                    narrow_d_scores,
                    q_tile,
                    d_k_tile,
                    input_precision=PRECISION,
                )

    store_tile(d_k, d_k_strides, column, keys, d_k_tile * scale, KEYS, D_HEAD, BLOCK)
    store_tile(d_v, d_v_strides, column, keys, d_v_tile, KEYS, D_HEAD, BLOCK)


@triton.jit(do_not_specialize=VARYING)
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
    QUERIES: constexpr,
    KEYS: constexpr,
    D_HEAD: constexpr,
    BLOCK: constexpr,
    SHARING: constexpr,
    CAUSAL: constexpr,
    WINDOWED: constexpr,
    PRECISION: constexpr,
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
            k_tile = load_tile(k, k_strides, column, keys, KEYS, D_HEAD, BLOCK, part != WHOLE)
            v_tile = load_tile(v, v_strides, column, keys, KEYS, D_HEAD, BLOCK, part != WHOLE)

            # The weights of the forward pass once more.
            scores = tl.dot(q_tile, k_tile.T, input_precision=PRECISION)
            weights = tl.exp2((scores - shift_rows[:, None]) * scale_log2)
            if part != WHOLE:
                seen = see(positions, column + tl.arange(0, KEYS), keys, window, CAUSAL, WINDOWED)
                weights = tl.where(seen, weights, 0.0)

            # Through the softmax to the scores, and to the queries.
            d_weights = tl.dot(d_output_tile, v_tile.T, input_precision=PRECISION)
            d_scores = (weights * (d_weights - delta_rows[:, None])).to(k_tile.dtype)
            d_q_tile = tl.dot(d_scores, k_tile, d_q_tile, input_precision=PRECISION)

    store_tile(d_q, d_q_strides, row, queries, d_q_tile * scale, QUERIES, D_HEAD, BLOCK)
