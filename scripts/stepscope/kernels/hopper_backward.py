"""Backward pass of FlashAttention for Hopper GPUs (compute capability 9.x), in Gluon: one kernel, 5
matrix products.

A program owns 128 keys of one head and goes over the queries that see them (FlashAttention-2, Dao
2023, algorithm 2, with the schedule of FlashAttention-3, Shah et al. 2024, appendix B). Two
warpgroups hold 64 keys each, with their sums of dK and dV in registers; one warp loads; one adds
dQ, to which every program contributes, to memory (see `hopper_turns`).
"""

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language import constexpr
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.language.nvidia.hopper.mbarrier import arrive, expect, wait
from triton.experimental.gluon.language.nvidia.hopper.tma import (
    async_copy_global_to_shared,
    async_copy_shared_to_global,
    store_wait,
)

from .hopper_tiles import (
    PART,
    accumulator,
    added,
    buffers_of,
    described,
    finished,
    init_barriers,
    multiplied,
    processors,
    rest_of,
    tile_at,
)
from .hopper_turns import (
    async_add_shared_to_global,
    begun_at,
    end_of,
    end_turn,
    only_seen,
    tile_of,
    tiles_that_see,
    wait_for_turn,
)
from .launching import Kernel, Plan
from .masks import Mask, blind
from .operands import LOG2_E, sharing, sizes
from .pointers import head_of, load_tile, store_tile
from .rows import ROWS_OF_A_TURN as COUNTED
from .rows import rows_of
from .tiles import HopperBackward

LITTLE = constexpr(24)  # the least number of registers that a warp can keep
ROWS = constexpr(64)  # keys of a warpgroup: the height of its matrix instruction
KEYS = constexpr(128)  # of a program
ROWS_OF_A_TURN = constexpr(COUNTED)
# Arguments that vary from call to call: code for some values of them would be other code, but no
# faster.
VARYING = [
    "heads",
    "query_tiles",
    "counters",
    "key_tiles",
    "keys",
    "sequences",
    "together",
    "shared_by",
    "offset",
    "window",
]


def add_to(plan: Plan, mask: Mask, tiles: HopperBackward) -> None:
    """From q, k, v, output, log-sum-exp and dO to the gradients of q, k and v; all but the
    log-sum-exp are 4D and addressable by TMA."""
    # Where 64 columns are multiplied, instructions are what is short: a shift in powers of two is
    # subtracted by those that scale the scores (1 x 32 x 16,384 tokens on an H200: 508 instead of
    # 469 TFLOP/s). Where 128 are, it is shared memory, and the product subtracts the shift (up to 4
    # % faster).
    unit = LOG2_E if tiles.block == PART.value else plan.slots[0].shape[-1] ** 0.5
    constants = {
        "QUERIES": tiles.queries,
        "BLOCK": tiles.block,
        "STAGES": tiles.stages,
        "REGISTERS": tiles.registers,
        "REST": rest_of(plan.slots[0].shape[-1]),
    }
    add_with(_backward_kernel, constants, KEYS.value, PART.value, unit, plan, mask, tiles)


def add_with(
    kernel: Kernel,
    constants: dict,
    keys_of_program: int,
    columns_of_part: int,
    unit: float,
    plan: Plan,
    mask: Mask,
    tiles: HopperBackward,
) -> None:
    """The launches of the backward pass with a kernel whose programs own so many keys and add dQ to
    its sum in parts of 64 rows and so many columns; the shift of scores is in this `unit` (see
    `rows_of`); `constants` are its compile-time ones before those that the shapes and mask
    decide."""
    q, k, v, output, lse, d_output, d_q, d_k, d_v = plan.slots
    sequences, heads, queries, keys = sizes(q, k)
    query_tiles, key_tiles = triton.cdiv(queries, tiles.queries), triton.cdiv(keys, keys_of_program)
    shift, delta, turns = rows_of(plan, output, d_output, lse, unit)
    sums = plan.scratch(sequences, queries, q.shape[-1], dtype=torch.float32)
    scale = q.shape[-1] ** -0.5
    shared_by = sharing(q, k)
    together = tiles.alone if shared_by == 1 else tiles.shared
    plan.launch(
        kernel,
        (sequences // shared_by * key_tiles,),
        (
            described(q, tiles.queries, tiles.block),
            described(k, ROWS.value, tiles.block),
            described(v, ROWS.value, tiles.block),
            described(d_output, tiles.queries, tiles.block),
            described(shift, 1, tiles.queries),
            described(delta, 1, tiles.queries),
            described(d_k, ROWS.value, tiles.block),
            described(d_v, ROWS.value, tiles.block),
            described(sums, PART.value, columns_of_part),
            turns,
            heads,
            query_tiles,
            turns.shape[1],
            key_tiles,
            keys,
            sequences // shared_by,
            together.of(sequences // shared_by, key_tiles, processors(plan.device)),
            shared_by,
            mask.offset,
            mask.window,
            scale,
            scale * LOG2_E,
        ),
        constants
        | {
            "SHARED": shared_by > 1,
            "CAUSAL": mask.is_causal,
            "SHIFTED": mask.offset != 0,
            "WINDOWED": mask.window > 0,
        },
        num_warps=4,
    )
    rows = 4096 // tiles.block
    plan.launch(
        _scale_kernel,
        (triton.cdiv(queries, rows), sequences),
        (
            sums,
            d_q,
            (heads * sums.strides[0], *sums.strides[:-1]),
            d_q.strides[:-1],
            heads,
            queries,
            *blind(queries, keys, mask),
            scale,
        ),
        {"ROWS": rows, "D_HEAD": q.shape[-1], "BLOCK": tiles.block},
    )


@gluon.jit(do_not_specialize=VARYING)
def _backward_kernel(
    q,
    k,
    v,
    d_output,
    shift,
    delta,
    d_k,
    d_v,
    sums,
    turns,
    heads,
    query_tiles,
    counters,
    key_tiles,
    keys,
    sequences,
    together,
    shared_by,
    offset,
    window,
    scale,
    scale_log2,
    QUERIES: constexpr,
    BLOCK: constexpr,
    STAGES: constexpr,
    REGISTERS: constexpr,
    REST: constexpr,
    SHARED: constexpr,
    CAUSAL: constexpr,
    SHIFTED: constexpr,
    WINDOWED: constexpr,
):
    sequence, key_tile = begun_at(gl.program_id(0), together, key_tiles, sequences)
    k_tiles = buffers_of(k, 2)
    v_tiles = buffers_of(v, 2)
    q_tiles = buffers_of(q, STAGES)
    d_output_tiles = buffers_of(d_output, STAGES)
    shift_tiles = buffers_of(shift, STAGES)
    delta_tiles = buffers_of(delta, STAGES)
    d_scores_layout: constexpr = gl.NVMMASharedLayout.get_default_for([ROWS, QUERIES], q.dtype)
    d_scores_tiles = gl.allocate_shared_memory(q.dtype, [2, ROWS, QUERIES], d_scores_layout)
    d_q_parts = buffers_of(sums, 2)
    # A buffer is ready when it is full, and free again when all of its readers are done with it.
    kv_ready = init_barriers(1, 1)
    q_ready = init_barriers(STAGES, 1)
    q_free = init_barriers(STAGES, 2)
    d_scores_ready = init_barriers(1, 2)
    d_scores_free = init_barriers(1, 2)
    d_q_ready = init_barriers(1, 2)
    d_q_free = init_barriers(1, 1)
    fence_async_shared()
    first_tile, end_tile = tiles_that_see(
        key_tile, query_tiles, offset, window, QUERIES, KEYS, CAUSAL, WINDOWED
    )
    key_heads = heads // shared_by
    place = (sequence, sequence // key_heads, sequence % key_heads, key_tile)
    steps = (first_tile, end_tile, shared_by)
    inputs = (q, k, v, d_output, shift, delta)
    loaded = (q_tiles, k_tiles, v_tiles, d_output_tiles, shift_tiles, delta_tiles)
    outputs = (d_k, d_v)
    made = (d_scores_tiles, d_q_parts)
    barriers = (kv_ready, q_ready, q_free, d_scores_ready, d_scores_free, d_q_ready, d_q_free)
    numbers = (keys, offset, window, scale, scale_log2)
    first: constexpr = constexpr(0)
    second: constexpr = constexpr(1)
    # fmt: off
    gl.warp_specialize([
        (_differentiate, (first, outputs, loaded, made, barriers, place, steps, numbers,
                          QUERIES, BLOCK, STAGES, REST, SHARED, CAUSAL, SHIFTED, WINDOWED)),
        (_differentiate, (second, outputs, loaded, made, barriers, place, steps, numbers,
                          QUERIES, BLOCK, STAGES, REST, SHARED, CAUSAL, SHIFTED, WINDOWED)),
        (_add_d_q, (sums, turns, counters, offset, window, made, barriers, place, steps,
                     QUERIES, BLOCK, SHARED, WINDOWED)),
        (_load, (inputs, loaded, barriers, place, steps, QUERIES, STAGES, SHARED)),
    ], [4, 1, 1], [REGISTERS, LITTLE, LITTLE])
    # fmt: on


@gluon.jit
def _load(
    inputs,
    loaded,
    barriers,
    place,
    steps,
    QUERIES: constexpr,
    STAGES: constexpr,
    SHARED: constexpr,
):
    """Fill the buffers: K and V once, then Q, dO and two numbers of each row, tile after tile."""
    q, k, v, d_output, shift, delta = inputs
    q_tiles, k_tiles, v_tiles, d_output_tiles, shift_tiles, delta_tiles = loaded
    kv_ready, q_ready, q_free, _d_scores_ready, _d_scores_free, _d_q_ready, _d_q_free = barriers
    sequence, batch, head, key_tile = place
    expect(kv_ready.index(0), 4 * k.block_type.nbytes)
    for group in gl.static_range(2):
        column = key_tile * KEYS + group * ROWS
        async_copy_global_to_shared(
            k, [batch, head, column, 0], kv_ready.index(0), k_tiles.index(group)
        )
        async_copy_global_to_shared(
            v, [batch, head, column, 0], kv_ready.index(0), v_tiles.index(group)
        )
    for n in range(steps[0], end_of(steps, SHARED)):
        step = n - steps[0]
        member, i = tile_of(n, steps, SHARED)
        slot = step % STAGES
        ready = q_ready.index(slot)
        row = i * QUERIES
        query_head = head * steps[2] + member
        query_sequence = sequence * steps[2] + member
        wait(q_free.index(slot), (step // STAGES & 1) ^ 1)
        expect(ready, 2 * q.block_type.nbytes + 2 * shift.block_type.nbytes)
        async_copy_global_to_shared(q, [batch, query_head, row, 0], ready, q_tiles.index(slot))
        async_copy_global_to_shared(shift, [query_sequence, row], ready, shift_tiles.index(slot))
        async_copy_global_to_shared(
            d_output, [batch, query_head, row, 0], ready, d_output_tiles.index(slot)
        )
        async_copy_global_to_shared(delta, [query_sequence, row], ready, delta_tiles.index(slot))


@gluon.jit
def _differentiate(
    group: constexpr,
    outputs,
    loaded,
    made,
    barriers,
    place,
    steps,
    numbers,
    QUERIES: constexpr,
    BLOCK: constexpr,
    STAGES: constexpr,
    REST: constexpr,
    SHARED: constexpr,
    CAUSAL: constexpr,
    SHIFTED: constexpr,
    WINDOWED: constexpr,
):
    """Gradients of one warpgroup's 64 keys and values, and its part of dQ in each step.

    Scores and weights are transposed, (keys, queries), so that the weights, in registers, are an
    operand of the products for dV and dK as they are. Only dQ needs the gradients of the scores of
    both warpgroups, through memory.
    """
    q_tiles, k_tiles, v_tiles, d_output_tiles, shift_tiles, delta_tiles = loaded
    d_k, d_v = outputs
    d_scores_tiles, d_q_parts = made
    kv_ready, q_ready, q_free, d_scores_ready, d_scores_free, d_q_ready, d_q_free = barriers
    _sequence, batch, head, key_tile = place
    keys, offset, window, scale, scale_log2 = numbers
    dtype: constexpr = d_k.dtype
    SCORES: constexpr = accumulator(QUERIES)
    WIDTH: constexpr = BLOCK if REST == 0 else PART
    GRADIENT: constexpr = accumulator(WIDTH)
    # Of a tile of 64 x 128, the second warpgroup has the columns beyond 64.
    D_Q_WIDTH: constexpr = REST if REST and group == 1 else PART
    D_Q: constexpr = accumulator(D_Q_WIDTH)
    OPERAND: constexpr = gl.DotOperandLayout(0, GRADIENT, 2)
    IN_POWERS: constexpr = BLOCK == PART  # what `add_to` says of the shift
    d_k_sum = gl.zeros([ROWS, WIDTH], gl.float32, GRADIENT)
    d_v_sum = gl.zeros([ROWS, WIDTH], gl.float32, GRADIENT)
    d_k_rest = 0
    d_v_rest = 0
    if REST:
        d_k_rest = gl.zeros([ROWS, REST], gl.float32, accumulator(REST))
        d_v_rest = gl.zeros([ROWS, REST], gl.float32, accumulator(REST))
    zeros = gl.zeros([ROWS, QUERIES], gl.float32, SCORES)
    d_q_zeros = gl.zeros([PART, D_Q_WIDTH], gl.float32, D_Q)
    column = key_tile * KEYS + group * ROWS
    columns = column + gl.arange(0, ROWS, layout=gl.SliceLayout(1, SCORES))
    keys_end_here = (key_tile + 1) * KEYS > keys
    wait(kv_ready.index(0), 0)
    for n in range(steps[0], end_of(steps, SHARED)):
        step = n - steps[0]
        _member, i = tile_of(n, steps, SHARED)
        slot = step % STAGES
        q_tile = tile_at(q_tiles, slot)
        d_output_tile = tile_at(d_output_tiles, slot)
        # 0, but the compiler does not know: it would compute the descriptors of buffers that never
        # change before the loop and fill the registers with them; those that depend on the step it
        # computes where they are needed.
        nothing = step >> 30
        k_tile = tile_at(k_tiles, group + nothing)
        v_tile = tile_at(v_tiles, group + nothing)
        wait(q_ready.index(slot), step // STAGES & 1)
        if IN_POWERS:
            scores = multiplied(k_tile, q_tile, zeros, False, REST)
        else:  # the shift is subtracted by the product itself, which starts from its negative
            start = zeros - shift_tiles.index(slot).load(SCORES)
            scores = multiplied(k_tile, q_tile, start, True, REST)
        d_weights = multiplied(v_tile, d_output_tile, zeros, False, REST)
        scores = warpgroup_mma_wait(2 if REST else 1, deps=(scores,))
        position = i * QUERIES + (offset if SHIFTED else 0)
        scores = only_seen(
            scores,
            position,
            columns,
            key_tile,
            keys,
            keys_end_here,
            window,
            QUERIES,
            KEYS,
            CAUSAL,
            WINDOWED,
        )
        if IN_POWERS:
            weights = gl.exp2(scores * scale_log2 - shift_tiles.index(slot).load(SCORES))
        else:
            weights = gl.exp2(scores * scale_log2)
        # This wait, needed only below, comes here for its branch: ptxas moves nothing across one.
        # Without it, it moves the exponentials behind the next wait, and the product dO V^T hides
        # none of them.
        wait(d_scores_free.index(0), (step & 1) ^ 1)
        d_weights = warpgroup_mma_wait(0, deps=(d_weights,))
        d_scores = (weights * (d_weights - delta_tiles.index(slot).load(SCORES))).to(dtype)
        operand = gl.convert_layout(weights.to(dtype), OPERAND)
        d_v_sum, d_v_rest = added(d_v_sum, d_v_rest, operand, d_output_tile, REST)
        d_scores_tiles.index(group).store(d_scores)
        fence_async_shared()
        arrive(d_scores_ready.index(0))
        operand = gl.convert_layout(d_scores, OPERAND)
        wait(d_scores_ready.index(0), step & 1)
        # dQ before dK: it has further to go.
        d_q_part = d_q_zeros
        for other in gl.static_range(2):
            left = d_scores_tiles.index(other + nothing)
            right = tile_at(k_tiles, other + nothing)
            if BLOCK == PART:  # a tile of 128 x 64: each warpgroup has half of the queries
                left = left.slice(group * PART, PART, 1)
            else:  # a tile of 64 x 128: each has half of the columns
                right = right.slice(group * PART, D_Q_WIDTH, 1)
            d_q_part = warpgroup_mma(
                left.permute([1, 0]), right, d_q_part, use_acc=other > 0, is_async=True
            )
        d_k_sum, d_k_rest = added(d_k_sum, d_k_rest, operand, q_tile, REST)
        if REST:
            d_v_sum, d_v_rest, d_q_part = warpgroup_mma_wait(2, deps=(d_v_sum, d_v_rest, d_q_part))
        else:
            d_v_sum, d_q_part = warpgroup_mma_wait(1, deps=(d_v_sum, d_q_part))
        arrive(d_scores_free.index(0))
        wait(d_q_free.index(0), (step & 1) ^ 1)
        d_q_tile = tile_at(d_q_parts, group)
        if D_Q_WIDTH < PART:
            d_q_tile = d_q_tile.slice(0, D_Q_WIDTH, 1)
        d_q_tile.store(d_q_part)
        fence_async_shared()
        arrive(d_q_ready.index(0))
        d_k_sum, d_k_rest = finished(d_k_sum, d_k_rest, REST)
        arrive(q_free.index(slot))

    # The results leave through the buffers of K and V. K is read by both warpgroups: the other has
    # to be done, too.
    wait(d_scores_free.index(0), ((end_of(steps, SHARED) - steps[0]) & 1) ^ 1)
    v_tile = tile_at(v_tiles, group)
    k_tile = tile_at(k_tiles, group)
    if REST:
        v_tile.slice(0, PART, 1).store(d_v_sum.to(dtype))
        narrow_rest = d_v_rest.to(dtype)  # type: ignore[attr-defined]  # with a rest no number
        v_tile.slice(PART, REST, 1).store(narrow_rest)
        k_tile.slice(0, PART, 1).store((d_k_sum * scale).to(dtype))
        k_tile.slice(PART, REST, 1).store((d_k_rest * scale).to(dtype))
    else:
        v_tile.store(d_v_sum.to(dtype))
        k_tile.store((d_k_sum * scale).to(dtype))
    fence_async_shared()
    async_copy_shared_to_global(d_v, [batch, head, column, 0], v_tiles.index(group))
    async_copy_shared_to_global(d_k, [batch, head, column, 0], k_tiles.index(group))
    store_wait(0)


@gluon.jit
def _add_d_q(
    sums,
    turns,
    counters,
    offset,
    window,
    made,
    barriers,
    place,
    steps,
    QUERIES: constexpr,
    BLOCK: constexpr,
    SHARED: constexpr,
    WINDOWED: constexpr,
):
    """Add dQ of each tile of queries to its sum in memory, when it is this program's turn."""
    _d_scores_tiles, d_q_parts = made
    _kv_ready, _q_ready, _q_free, _d_scores_ready, _d_scores_free, d_q_ready, d_q_free = barriers
    sequence, _batch, _head, key_tile = place
    for n in range(steps[0], end_of(steps, SHARED)):
        step = n - steps[0]
        member, i = tile_of(n, steps, SHARED)
        begins = 0
        if WINDOWED:
            begins = gl.maximum(i * QUERIES + offset - window + 1, 0) // KEYS
        query_sequence = sequence * steps[2] + member
        turn = turns + query_sequence * counters + i * (QUERIES // ROWS_OF_A_TURN)
        wait(d_q_ready.index(0), step & 1)
        wait_for_turn(turn, key_tile - begins)
        for group in gl.static_range(2):
            row = i * QUERIES + (group * PART if BLOCK == PART else 0)
            column = 0 if BLOCK == PART else group * PART
            if key_tile == begins:
                async_copy_shared_to_global(
                    sums, [query_sequence, row, column], d_q_parts.index(group)
                )
            else:
                async_add_shared_to_global(
                    sums, [query_sequence, row, column], d_q_parts.index(group)
                )
        store_wait(0)  # until the buffer has been read
        arrive(d_q_free.index(0))
        end_turn(turn, i)


@triton.jit(do_not_specialize=["heads", "queries", "first", "last"])
def _scale_kernel(
    sums,
    d_q,
    sums_strides,
    d_q_strides,
    heads,
    queries,
    first,
    last,
    scale,
    ROWS: constexpr,
    D_HEAD: constexpr,
    BLOCK: constexpr,
):
    """The sums times the scale, in the precision and the layout of Q. Only queries from `first` to
    `last` see a key: those of a whole tile of others have no sum."""
    row = tl.program_id(0) * ROWS
    sequence = tl.program_id(1)
    sums = head_of(sums, sums_strides, sequence, heads)
    d_q = head_of(d_q, d_q_strides, sequence, heads)
    tile = load_tile(sums, sums_strides, row, last, ROWS, D_HEAD, BLOCK, True)
    tile = tl.where((row + tl.arange(0, ROWS) >= first)[:, None], tile, 0.0)
    store_tile(d_q, d_q_strides, row, queries, tile * scale, ROWS, D_HEAD, BLOCK)
