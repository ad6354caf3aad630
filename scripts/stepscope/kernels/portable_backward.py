"""Backward pass of FlashAttention-2 (Dao 2023, algorithm 2) in Triton, for any GPU that Triton runs
on.

Two kernels: one goes over keys for the gradients of K and V, one over queries for that of Q. Each
sum stays in one program, so that nothing is added by several in whatever order they come: the same
inputs give the same bits. The price is that scores and dO V^T are computed twice, 7 matrix products
instead of 5.

fp32 that is multiplied in parts they may take apart in each step, or read from a workspace in which
that was done once (`stepscope.kernels.parts`). Then only weights and gradients of scores are taken
apart within.
"""

import triton
import triton.language as tl
from triton.language import constexpr

from .launching import Plan
from .masks import Mask
from .operands import LOG2_E, rounded_up, sharing, sizes
from .parts import first_tile, load_parts, parts_of, product, split, transposed
from .pointers import VARYING, head_of, load_tile, store_tile
from .rows import PADDED_TO, rows_of
from .seen import WHOLE, keys_seen, queries_seeing, see, seen_by
from .tiles import Tiles, input_precision, launch

SPLIT = constexpr("split")  # the precision of operands that come in parts


def add_to(plan: Plan, mask: Mask, tiles: tuple[Tiles, Tiles], is_split: bool) -> None:
    """From q, k, v, output, log-sum-exp and dO to the gradients of q, k and v; all but the
    log-sum-exp, (batch, heads, queries), are 4D with contiguous rows. tiles: of the kernel that
    goes over keys, and of the one over queries. is_split: fp32 is taken apart once."""
    q, k, v, output, lse, d_output, d_q, d_k, d_v, *_ = plan.slots
    shift, delta, _ = rows_of(plan, output, d_output, lse)
    read = [q, k, v, d_output]
    if is_split:
        read = [split(plan, each) for each in read]
    sequences, heads, queries, keys = sizes(q, k)
    padded = shift.shape[1], rounded_up(keys, PADDED_TO)
    scale = q.shape[-1] ** -0.5
    numbers = (heads, queries, keys, mask.offset, mask.window, *padded, scale, scale * LOG2_E)
    of_keys, of_queries = tiles
    key_programs = (triton.cdiv(keys, of_keys.keys), sequences // sharing(q, k))
    query_programs = (triton.cdiv(queries, of_queries.queries), sequences)
    kernels = _KERNELS[is_split]
    for kernel, own, programs, gradients in (
        (kernels[0], of_keys, key_programs, (d_k, d_v)),
        (kernels[1], of_queries, query_programs, (d_q,)),
    ):
        tensors = (*read, *gradients)
        strides = [x.strides[:-1] for x in tensors]
        precision = SPLIT.value if is_split else input_precision(q.dtype, own)
        arguments = (*tensors, shift, delta, *strides, *numbers)
        launch(plan, kernel, programs, arguments, mask, own, PRECISION=precision)


@triton.jit
def _first(
    x, strides, sequence, heads, padded, ROWS: constexpr, BLOCK: constexpr, PRECISION: constexpr
):
    """Where the rows of a sequence begin: of a tile, if it is in parts."""
    if PRECISION == SPLIT:
        return first_tile(x, sequence, padded, ROWS, BLOCK)
    else:
        return head_of(x, strides, sequence, heads)


@triton.jit
def _load(
    first,
    strides,
    row,
    length,
    ROWS: constexpr,
    D_HEAD: constexpr,
    BLOCK: constexpr,
    CUT: constexpr,
    PRECISION: constexpr,
):
    """A tile from this row on, see load_tile(); those in parts are padded with zeros."""
    if PRECISION == SPLIT:
        return load_parts(first, row, BLOCK)
    else:
        return load_tile(first, strides, row, length, ROWS, D_HEAD, BLOCK, CUT)


@triton.jit
def _by_transposed(a, b, PRECISION: constexpr):
    """a b^T, of two tiles that were loaded."""
    if PRECISION == SPLIT:
        return product(a, transposed(b))
    else:
        return tl.dot(a, b.T, input_precision=PRECISION)


@triton.jit
def _plus(total, a, b, PRECISION: constexpr):
    """total + a b, of a tile that was loaded."""
    if PRECISION == SPLIT:
        return total + product(parts_of(a), b)
    else:  # tensor cores want both factors in one type
        return tl.dot(a.to(b.dtype), b, total, input_precision=PRECISION)


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
    PRECISION: constexpr,
):
    """Gradients of a tile of keys and values, with the scores transposed: (keys, queries)."""
    # The first keys are seen by the most queries: they go first.
    column = tl.program_id(0) * KEYS
    sequence = tl.program_id(1)
    kv_heads = heads // SHARING
    k = _first(k, k_strides, sequence, kv_heads, padded_keys, KEYS, BLOCK, PRECISION)
    v = _first(v, v_strides, sequence, kv_heads, padded_keys, KEYS, BLOCK, PRECISION)
    d_k = head_of(d_k, d_k_strides, sequence, kv_heads)
    d_v = head_of(d_v, d_v_strides, sequence, kv_heads)
    columns = column + tl.arange(0, KEYS)
    k_tile = _load(k, k_strides, column, keys, KEYS, D_HEAD, BLOCK, True, PRECISION)
    v_tile = _load(v, v_strides, column, keys, KEYS, D_HEAD, BLOCK, True, PRECISION)
    d_k_tile = tl.zeros([KEYS, BLOCK], tl.float32)
    d_v_tile = tl.zeros([KEYS, BLOCK], tl.float32)

    begins, ends = queries_seeing(column, queries, offset, window, QUERIES, KEYS, CAUSAL, WINDOWED)
    for member in range(SHARING):
        query_sequence = sequence * SHARING + member
        q_first = _first(q, q_strides, query_sequence, heads, padded, QUERIES, BLOCK, PRECISION)
        d_output_first = _first(
            d_output, d_output_strides, query_sequence, heads, padded, QUERIES, BLOCK, PRECISION
        )
        shift_head = shift + query_sequence * padded
        delta_head = delta + query_sequence * padded
        for part in tl.static_range(3 if WINDOWED else 2):
            for row in range(begins[part], ends[part], QUERIES):
                rows = row + tl.arange(0, QUERIES)
                # Rows beyond the last query are cut in every tile: a program meets the last one,
                # masked or not.
                q_tile = _load(
                    q_first, q_strides, row, queries, QUERIES, D_HEAD, BLOCK, True, PRECISION
                )

                # The weights of the forward pass once more.
                scores = _by_transposed(k_tile, q_tile, PRECISION)
                shift_rows = tl.load(shift_head + rows)
                weights = tl.exp2((scores - shift_rows[None, :]) * scale_log2)
                if part != WHOLE:
                    seen = seen_by(columns, rows + offset, window, WINDOWED)
                    weights = tl.where(seen, weights, 0.0)
                d_output_tile = _load(
                    d_output_first,
                    d_output_strides,
                    row,
                    queries,
                    QUERIES,
                    D_HEAD,
                    BLOCK,
                    True,
                    PRECISION,
                )
                d_v_tile = _plus(d_v_tile, weights, d_output_tile, PRECISION)

                # Through the softmax to the scores, and to the keys.
                d_weights = _by_transposed(v_tile, d_output_tile, PRECISION)
                d_scores = weights * (d_weights - tl.load(delta_head + rows)[None, :])
                d_k_tile = _plus(d_k_tile, d_scores, q_tile, PRECISION)

    store_tile(d_k, d_k_strides, column, keys, d_k_tile * scale, KEYS, D_HEAD, BLOCK)
    store_tile(d_v, d_v_strides, column, keys, d_v_tile, KEYS, D_HEAD, BLOCK)


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
    PRECISION: constexpr,
):
    """Gradient of a tile of queries."""
    row = (tl.num_programs(0) - 1 - tl.program_id(0)) * QUERIES
    sequence = tl.program_id(1)
    of_keys = sequence // SHARING
    kv_heads = heads // SHARING
    q = _first(q, q_strides, sequence, heads, padded, QUERIES, BLOCK, PRECISION)
    k = _first(k, k_strides, of_keys, kv_heads, padded_keys, KEYS, BLOCK, PRECISION)
    v = _first(v, v_strides, of_keys, kv_heads, padded_keys, KEYS, BLOCK, PRECISION)
    d_output = _first(
        d_output, d_output_strides, sequence, heads, padded, QUERIES, BLOCK, PRECISION
    )
    d_q = head_of(d_q, d_q_strides, sequence, heads)
    rows = row + tl.arange(0, QUERIES)
    q_tile = _load(q, q_strides, row, queries, QUERIES, D_HEAD, BLOCK, True, PRECISION)
    d_output_tile = _load(
        d_output, d_output_strides, row, queries, QUERIES, D_HEAD, BLOCK, True, PRECISION
    )
    shift_rows = tl.load(shift + sequence * padded + rows)
    delta_rows = tl.load(delta + sequence * padded + rows)
    d_q_tile = tl.zeros([QUERIES, BLOCK], tl.float32)

    positions = rows + offset
    begins, ends = keys_seen(row + offset, keys, window, QUERIES, KEYS, CAUSAL, WINDOWED)
    for part in tl.static_range(0 if WINDOWED else 1, 3):
        for column in range(begins[part], ends[part], KEYS):
            cut: constexpr = part != WHOLE
            k_tile = _load(k, k_strides, column, keys, KEYS, D_HEAD, BLOCK, cut, PRECISION)
            if PRECISION != SPLIT:
                v_tile = load_tile(v, v_strides, column, keys, KEYS, D_HEAD, BLOCK, cut)

            # The weights of the forward pass once more.
            scores = _by_transposed(q_tile, k_tile, PRECISION)
            weights = tl.exp2((scores - shift_rows[:, None]) * scale_log2)
            if part != WHOLE:
                seen = see(positions, column + tl.arange(0, KEYS), keys, window, CAUSAL, WINDOWED)
                weights = tl.where(seen, weights, 0.0)

            # Through the softmax to the scores, and to the queries.
            if PRECISION == SPLIT:  # three tiles, loaded no earlier than they are needed
                v_tile = load_parts(v, column, BLOCK)
            d_weights = _by_transposed(d_output_tile, v_tile, PRECISION)
            d_scores = weights * (d_weights - delta_rows[:, None])
            d_q_tile = _plus(d_q_tile, d_scores, k_tile, PRECISION)

    store_tile(d_q, d_q_strides, row, queries, d_q_tile * scale, QUERIES, D_HEAD, BLOCK)


_BOTH = (_keys_kernel, _queries_kernel)
_IN_PARTS = [*VARYING, "padded", "padded_keys"]
# By whether the operands come in parts.
_KERNELS = (
    tuple(map(triton.jit(do_not_specialize=VARYING), _BOTH)),
    tuple(map(triton.jit(do_not_specialize=_IN_PARTS), _BOTH)),
)
