"""Backward pass of FlashAttention for Hopper GPUs (compute capability 9.x) and a d_head of more
than 128, in Gluon.

As in `hopper_backward`, one kernel computes the 5 matrix products, a program owns keys of one head
and goes over the queries that see them, and dQ is added up in a fixed order. But the sums of dK and
dV of 64 keys fill the registers of two warpgroups, so that these do not share keys but work: one
makes the weights and sums dV, the other makes the gradients of the scores and sums dK. Weights and
gradients of scores go from one to the other through shared memory, and each computes dQ for half of
the columns. Two warps, one for each buffer, add dQ to memory: to add 64 KiB and tell the next
program takes longer than a step, and a single one would hold up all others.

dQ of a tile of queries is, in fp32, as large as the tiles of Q and dO together, and leaves through
their buffers: dV is the last to read dO and is summed where one half of dQ is computed, dK is the
last to read Q and is summed where the other is.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language import constexpr
from triton.experimental.gluon.language._core import builtin
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

from .hopper_backward import LITTLE, VARYING, add_with
from .hopper_tiles import (
    accumulator,
    buffers_of,
    init_barriers,
    multiplied,
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
from .launching import Plan
from .masks import Mask
from .tiles import HopperBackward

# Of a tile of queries or of keys: the height of a warpgroup's matrix instruction.
ROWS = constexpr(64)
BLOCK = constexpr(256)  # columns of a tile
HALF = constexpr(128)  # columns of dQ that a warpgroup computes


def add_to(plan: Plan, mask: Mask, tiles: HopperBackward) -> None:
    """As `hopper_backward.add_to`. Only the registers and how many sequences take turns can be
    chosen."""
    unit = plan.slots[0].shape[-1] ** 0.5
    add_with(
        _backward_kernel,
        {"REGISTERS": tiles.registers},
        ROWS.value,
        HALF.value,
        unit,
        plan,
        mask,
        tiles,
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
    REGISTERS: constexpr,
    SHARED: constexpr,
    CAUSAL: constexpr,
    SHIFTED: constexpr,
    WINDOWED: constexpr,
):
    sequence, key_tile = begun_at(gl.program_id(0), together, key_tiles, sequences)
    k_tiles = buffers_of(k, 1)
    v_tiles = buffers_of(v, 1)
    q_tiles = buffers_of(q, 2)
    d_output_tiles = buffers_of(d_output, 2)
    shift_tiles = buffers_of(shift, 2)
    delta_tiles = buffers_of(delta, 2)
    square: constexpr = gl.NVMMASharedLayout.get_default_for([ROWS, ROWS], q.dtype)
    weights_tiles = gl.allocate_shared_memory(q.dtype, [1, ROWS, ROWS], square)
    d_scores_tiles = gl.allocate_shared_memory(q.dtype, [1, ROWS, ROWS], square)
    # A buffer is ready when it is full, and free again when what it was used for last is done: see
    # each wait.
    kv_ready = init_barriers(1, 1)
    k_free = init_barriers(1, 1)
    q_ready = init_barriers(2, 1)
    q_free = init_barriers(2, 1)
    d_output_ready = init_barriers(2, 1)
    d_output_free = init_barriers(2, 1)
    weights_ready = init_barriers(1, 1)
    d_scores_ready = init_barriers(1, 1)
    d_q_ready = init_barriers(4, 1)  # of each buffer and half
    fence_async_shared()
    first_tile, end_tile = tiles_that_see(
        key_tile, query_tiles, offset, window, ROWS, ROWS, CAUSAL, WINDOWED
    )
    key_heads = heads // shared_by
    place = (sequence, sequence // key_heads, sequence % key_heads, key_tile)
    steps = (first_tile, end_tile, shared_by)
    inputs = (q, k, v, d_output, shift, delta)
    loaded = (q_tiles, k_tiles, v_tiles, d_output_tiles, shift_tiles, delta_tiles)
    loading = (kv_ready, q_ready, q_free, d_output_ready, d_output_free)
    made = (weights_tiles, d_scores_tiles)
    making = (weights_ready, d_scores_ready, d_q_ready, k_free)
    numbers = (keys, offset, window, scale_log2)
    first: constexpr = constexpr(0)
    second: constexpr = constexpr(1)
    # fmt: off
    gl.warp_specialize([
        (_sum_d_v, (d_v, sums, loaded, loading, made, making, place, steps, numbers,
                    SHARED, CAUSAL, SHIFTED, WINDOWED)),
        (_sum_d_k, (d_k, sums, loaded, loading, made, making, place, steps, scale, SHARED)),
        (_add_d_q, (first, sums, turns, counters, offset, window, loaded, loading, making,
                    place, steps, SHARED, WINDOWED)),
        (_add_d_q, (second, sums, turns, counters, offset, window, loaded, loading, making,
                    place, steps, SHARED, WINDOWED)),
        (_load, (inputs, loaded, loading, place, steps, SHARED)),
    ], [4, 1, 1, 1], [REGISTERS, LITTLE, LITTLE, LITTLE])
    # fmt: on


@gluon.jit
def _load(inputs, loaded, loading, place, steps, SHARED: constexpr):
    """Fill the buffers: K and V once, then Q, dO and two numbers of each row, tile after tile."""
    q, k, v, d_output, shift, delta = inputs
    q_tiles, k_tiles, v_tiles, d_output_tiles, shift_tiles, delta_tiles = loaded
    kv_ready, q_ready, q_free, d_output_ready, d_output_free = loading
    sequence, batch, head, key_tile = place
    expect(kv_ready.index(0), 2 * k.block_type.nbytes)
    async_copy_global_to_shared(
        k, [batch, head, key_tile * ROWS, 0], kv_ready.index(0), k_tiles.index(0)
    )
    async_copy_global_to_shared(
        v, [batch, head, key_tile * ROWS, 0], kv_ready.index(0), v_tiles.index(0)
    )
    for n in range(steps[0], end_of(steps, SHARED)):
        step = n - steps[0]
        member, i = tile_of(n, steps, SHARED)
        slot = step & 1
        free = (step >> 1 & 1) ^ 1
        row = i * ROWS
        query_head = head * steps[2] + member
        query_sequence = sequence * steps[2] + member
        ready = d_output_ready.index(slot)
        wait(d_output_free.index(slot), free)
        expect(ready, d_output.block_type.nbytes + delta.block_type.nbytes)
        async_copy_global_to_shared(
            d_output, [batch, query_head, row, 0], ready, d_output_tiles.index(slot)
        )
        async_copy_global_to_shared(delta, [query_sequence, row], ready, delta_tiles.index(slot))
        ready = q_ready.index(slot)
        wait(q_free.index(slot), free)
        expect(ready, q.block_type.nbytes + shift.block_type.nbytes)
        async_copy_global_to_shared(q, [batch, query_head, row, 0], ready, q_tiles.index(slot))
        async_copy_global_to_shared(shift, [query_sequence, row], ready, shift_tiles.index(slot))


@gluon.jit
def _sum_d_v(
    d_v,
    sums,
    loaded,
    loading,
    made,
    making,
    place,
    steps,
    numbers,
    SHARED: constexpr,
    CAUSAL: constexpr,
    SHIFTED: constexpr,
    WINDOWED: constexpr,
):
    """Weights of each tile of queries, the sum of dV, and the first half of the columns of dQ.

    Scores and weights are transposed, (keys, queries), so that the weights, in registers, are an
    operand as they are.
    """
    q_tiles, k_tiles, v_tiles, d_output_tiles, shift_tiles, _delta_tiles = loaded
    kv_ready, q_ready, _q_free, d_output_ready, _d_output_free = loading
    weights_tiles, d_scores_tiles = made
    weights_ready, d_scores_ready, d_q_ready, k_free = making
    _sequence, batch, head, key_tile = place
    keys, offset, window, scale_log2 = numbers
    dtype: constexpr = d_v.dtype
    SCORES: constexpr = accumulator(ROWS)
    GRADIENT: constexpr = accumulator(BLOCK)
    OPERAND: constexpr = gl.DotOperandLayout(0, GRADIENT, 2)
    D_Q: constexpr = accumulator(HALF)
    d_v_sum = gl.zeros([ROWS, BLOCK], gl.float32, GRADIENT)
    zeros = gl.zeros([ROWS, ROWS], gl.float32, SCORES)
    d_q_zeros = gl.zeros([ROWS, HALF], gl.float32, D_Q)
    columns = key_tile * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, SCORES))
    keys_end_here = (key_tile + 1) * ROWS > keys
    wait(kv_ready.index(0), 0)
    for n in range(steps[0], end_of(steps, SHARED)):
        step = n - steps[0]
        _member, i = tile_of(n, steps, SHARED)
        slot = step & 1
        # 0, but the compiler does not know: see `hopper_backward`.
        nothing = step >> 30
        k_tile = tile_at(k_tiles, nothing)
        q_tile = tile_at(q_tiles, slot)
        d_output_tile = tile_at(d_output_tiles, slot)
        wait(q_ready.index(slot), step >> 1 & 1)
        # The shift is subtracted by the product itself, which starts from its negative.
        scores = multiplied(k_tile, q_tile, zeros - shift_tiles.index(slot).load(SCORES), True, 0)
        scores = warpgroup_mma_wait(0, deps=(scores,))
        position = i * ROWS + (offset if SHIFTED else 0)
        scores = only_seen(
            scores,
            position,
            columns,
            key_tile,
            keys,
            keys_end_here,
            window,
            ROWS,
            ROWS,
            CAUSAL,
            WINDOWED,
        )
        weights = gl.exp2(scores * scale_log2).to(dtype)
        # The weights before these have been read: the gradients of their scores have been waited
        # for.
        weights_tiles.index(0).store(weights)
        arrive(weights_ready.index(0))
        wait(d_output_ready.index(slot), step >> 1 & 1)
        operand = gl.convert_layout(weights, OPERAND)
        d_v_sum = warpgroup_mma(operand, d_output_tile, d_v_sum, is_async=True)
        wait(d_scores_ready.index(0), step & 1)
        d_scores = d_scores_tiles.index(nothing).permute([1, 0])
        d_q = warpgroup_mma(
            d_scores, k_tile.slice(0, HALF, 1), d_q_zeros, use_acc=False, is_async=True
        )
        d_v_sum, d_q = warpgroup_mma_wait(0, deps=(d_v_sum, d_q))
        # All warps have read dO then, and the other warpgroup, too: it made the gradients of the
        # scores with it.
        _all_warps()
        _half_of_d_q(d_output_tiles, slot, sums).reshape([ROWS, HALF]).store(d_q)
        fence_async_shared()
        arrive(d_q_ready.index(2 * slot))

    arrive(k_free.index(0))
    # The result leaves through the buffer of V, which the other warpgroup has read, as it has dO.
    tile_at(v_tiles, 0).store(d_v_sum.to(dtype))
    fence_async_shared()
    async_copy_shared_to_global(d_v, [batch, head, key_tile * ROWS, 0], v_tiles.index(0))
    store_wait(0)


@gluon.jit
def _sum_d_k(d_k, sums, loaded, loading, made, making, place, steps, scale, SHARED: constexpr):
    """Gradients of the scores of each tile of queries, the sum of dK, and the second half of the
    columns of dQ."""
    q_tiles, k_tiles, v_tiles, d_output_tiles, _shift_tiles, delta_tiles = loaded
    kv_ready, q_ready, _q_free, d_output_ready, _d_output_free = loading
    weights_tiles, d_scores_tiles = made
    weights_ready, d_scores_ready, d_q_ready, k_free = making
    _sequence, batch, head, key_tile = place
    dtype: constexpr = d_k.dtype
    SCORES: constexpr = accumulator(ROWS)
    GRADIENT: constexpr = accumulator(BLOCK)
    OPERAND: constexpr = gl.DotOperandLayout(0, GRADIENT, 2)
    D_Q: constexpr = accumulator(HALF)
    d_k_sum = gl.zeros([ROWS, BLOCK], gl.float32, GRADIENT)
    zeros = gl.zeros([ROWS, ROWS], gl.float32, SCORES)
    d_q_zeros = gl.zeros([ROWS, HALF], gl.float32, D_Q)
    wait(kv_ready.index(0), 0)
    for n in range(steps[0], end_of(steps, SHARED)):
        step = n - steps[0]
        slot = step & 1
        nothing = step >> 30
        k_tile = tile_at(k_tiles, nothing)
        v_tile = tile_at(v_tiles, nothing)
        q_tile = tile_at(q_tiles, slot)
        d_output_tile = tile_at(d_output_tiles, slot)
        wait(d_output_ready.index(slot), step >> 1 & 1)
        d_weights = multiplied(
            v_tile, d_output_tile, zeros - delta_tiles.index(slot).load(SCORES), True, 0
        )
        wait(q_ready.index(slot), step >> 1 & 1)
        wait(weights_ready.index(0), step & 1)
        weights = weights_tiles.index(nothing).load(SCORES)
        d_weights = warpgroup_mma_wait(0, deps=(d_weights,))
        d_scores = (weights.to(gl.float32) * d_weights).to(dtype)
        operand = gl.convert_layout(d_scores, OPERAND)
        d_k_sum = warpgroup_mma(operand, q_tile, d_k_sum, is_async=True)
        # The other warpgroup has read those before these: it made these weights after that.
        d_scores_tiles.index(0).store(d_scores)
        fence_async_shared()
        arrive(d_scores_ready.index(0))
        wait(d_scores_ready.index(0), step & 1)
        d_scores_t = d_scores_tiles.index(nothing).permute([1, 0])
        d_q = warpgroup_mma(
            d_scores_t, k_tile.slice(HALF, HALF, 1), d_q_zeros, use_acc=False, is_async=True
        )
        d_k_sum, d_q = warpgroup_mma_wait(0, deps=(d_k_sum, d_q))
        # All warps have read Q then, and the other warpgroup, too: it made the weights with it.
        _all_warps()
        _half_of_d_q(q_tiles, slot, sums).reshape([ROWS, HALF]).store(d_q)
        fence_async_shared()
        arrive(d_q_ready.index(2 * slot + 1))

    # The result leaves through the buffer of K, which the other warpgroup reads, too.
    wait(k_free.index(0), 0)
    tile_at(k_tiles, 0).store((d_k_sum * scale).to(dtype))
    fence_async_shared()
    async_copy_shared_to_global(d_k, [batch, head, key_tile * ROWS, 0], k_tiles.index(0))
    store_wait(0)


@gluon.jit
def _add_d_q(
    slot: constexpr,
    sums,
    turns,
    counters,
    offset,
    window,
    loaded,
    loading,
    making,
    place,
    steps,
    SHARED: constexpr,
    WINDOWED: constexpr,
):
    """Add dQ of each tile of queries that leaves through one of the two buffers to its sum in
    memory, when it is this program's turn."""
    q_tiles, _k_tiles, _v_tiles, d_output_tiles, _shift_tiles, _delta_tiles = loaded
    _kv_ready, _q_ready, q_free, _d_output_ready, d_output_free = loading
    _weights_ready, _d_scores_ready, d_q_ready, _k_free = making
    sequence, _batch, _head, key_tile = place
    for n in range(steps[0] + slot, end_of(steps, SHARED), 2):
        step = n - steps[0]
        member, i = tile_of(n, steps, SHARED)
        begins = 0
        if WINDOWED:
            begins = gl.maximum(i * ROWS + offset - window + 1, 0) // ROWS
        query_sequence = sequence * steps[2] + member
        turn = turns + query_sequence * counters + i
        wait_for_turn(turn, key_tile - begins)
        for half in gl.static_range(2):
            tiles = d_output_tiles if half == 0 else q_tiles
            part = _half_of_d_q(tiles, slot, sums)
            wait(d_q_ready.index(2 * slot + half), step >> 1 & 1)
            if key_tile == begins:
                async_copy_shared_to_global(sums, [query_sequence, i * ROWS, half * HALF], part)
            else:
                async_add_shared_to_global(sums, [query_sequence, i * ROWS, half * HALF], part)
        store_wait(1)  # until the buffer has been read
        arrive(d_output_free.index(slot))
        store_wait(0)
        arrive(q_free.index(slot))
        end_turn(turn, i)


@gluon.jit
def _half_of_d_q(tiles, slot, sums):
    """The buffer of a tile of Q or dO, as one of half a tile of dQ in fp32."""
    return tiles.index(slot)._reinterpret(gl.float32, sums.block_shape, sums.layout)


@builtin
def _all_warps(_semantic=None):
    """Wait for all warps of the warpgroup (a function of Gluon whose name differs between versions
    of Triton)."""
    return _semantic.debug_barrier()
