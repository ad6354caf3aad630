"""Forward pass of FlashAttention for Hopper GPUs (compute capability 9.x), in Gluon: Triton with
explicit warps.

The schedule is that of FlashAttention-3 (Shah et al. 2024, section 3). One warp loads tiles with
the tensor memory accelerator into a ring of buffers. Each other warpgroup (4 warps) owns 64 queries
and keeps the tensor cores busy while it computes exponentials: the scores of the next tile of keys
are multiplied while the weights of this one are made, and the warpgroups drift apart, so that one's
products hide another's exponentials.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language import constexpr
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.language.nvidia.hopper.mbarrier import arrive, expect, wait
from triton.experimental.gluon.language.nvidia.hopper.tma import (
    async_copy_global_to_shared,
    async_copy_shared_to_global,
    store_wait,
)

from .hopper_blocks import TOLD, tell, tiles_seen, told
from .hopper_softmax import finite, grown, hides, masked, rescaled
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
from .launching import Plan
from .masks import Mask
from .operands import LOG2_E, sharing, sizes
from .tiles import HOPPER_ROWS, HopperForward

LN_2 = constexpr(0.6931471805599453)
LITTLE = constexpr(24)  # the least number of registers that a warp can keep
ROWS = constexpr(HOPPER_ROWS)


def add_to(plan: Plan, mask: Mask, tiles: HopperForward) -> None:
    """From q, k, v to output, shaped like q, and log-sum-exp, (batch, heads, queries) fp32; all 4D
    and addressable by TMA. The last slot is a `counter`."""
    q, k, v, output, lse, given_out = plan.slots
    sequences, heads, queries, keys = sizes(q, k)
    blocks = -(-queries // (ROWS.value * tiles.warpgroups))
    shared_by = sharing(q, k)
    local = mask.window > 0 or mask.offset % ROWS.value != 0
    cached = max(1, tiles.cached // (2 * keys * tiles.block * k.itemsize)) * shared_by
    plan.launch(
        _forward_kernel,
        (min(processors(plan.device), blocks * sequences),),
        (
            described(q, ROWS.value, tiles.block),
            described(k, tiles.keys, tiles.block),
            described(v, tiles.keys, tiles.block),
            described(output, ROWS.value, tiles.block),
            lse,
            given_out,
            heads,
            sequences,
            min(cached, sequences),
            blocks,
            queries,
            keys,
            shared_by,
            mask.offset,
            mask.window,
            q.shape[-1] ** -0.5 * LOG2_E,
        ),
        {
            "KEYS": tiles.keys,
            "BLOCK": tiles.block,
            "GROUPS": tiles.warpgroups,
            "STAGES": tiles.stages,
            "REGISTERS": tiles.registers,
            "REST": rest_of(q.shape[-1]),
            "CAUSAL": mask.is_causal,
            "LOCAL": local,
        },
        num_warps=4,
    )


# What varies from call to call and would change the code, but not its speed.
@gluon.jit(
    do_not_specialize=[
        "heads",
        "sequences",
        "cached",
        "blocks",
        "queries",
        "keys",
        "shared_by",
        "offset",
        "window",
    ]
)
def _forward_kernel(
    q,
    k,
    v,
    output,
    lse,
    given_out,
    heads,
    sequences,
    cached,
    blocks,
    queries,
    keys,
    shared_by,
    offset,
    window,
    scale_log2,
    KEYS: constexpr,
    BLOCK: constexpr,
    GROUPS: constexpr,
    STAGES: constexpr,
    REGISTERS: constexpr,
    REST: constexpr,
    CAUSAL: constexpr,
    LOCAL: constexpr,
):
    # Two blocks of queries: the next one comes while one is attended to. Where there is room for
    # one only, its results leave through its buffer.
    SPARE: constexpr = BLOCK <= 128
    Q_SLOTS: constexpr = 2 if SPARE else 1
    q_tiles = buffers_of(q, Q_SLOTS * GROUPS)
    k_tiles = buffers_of(k, STAGES)
    v_tiles = buffers_of(v, STAGES)
    output_tiles = buffers_of(output, GROUPS) if SPARE else q_tiles
    work = gl.allocate_shared_memory(gl.int32, [2, TOLD], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    # A buffer is ready when all of its bytes have come, and free again when all of its readers are
    # done with it.
    q_ready = init_barriers(Q_SLOTS * GROUPS, 1)
    q_free = init_barriers(Q_SLOTS * GROUPS, 1)
    k_ready = init_barriers(STAGES, 1)
    k_free = init_barriers(STAGES, GROUPS)
    v_ready = init_barriers(STAGES, 1)
    v_free = init_barriers(STAGES, GROUPS)
    work_ready = init_barriers(2, 1)
    work_free = init_barriers(2, GROUPS)
    fence_async_shared()
    inputs = (q, k, v)
    buffers = (q_tiles, k_tiles, v_tiles, output_tiles, work)
    barriers = (q_ready, q_free, k_ready, k_free, v_ready, v_free, work_ready, work_free)
    grid = (heads, sequences, cached, blocks)
    mask = (queries, keys, offset, window)
    first: constexpr = constexpr(0)
    second: constexpr = constexpr(1)
    given = (output, lse, buffers, barriers, grid, mask, scale_log2)
    # fmt: off
    if GROUPS == 2:
        gl.warp_specialize([
            (_attend, (first, given, KEYS, BLOCK, GROUPS, STAGES, Q_SLOTS, REST, CAUSAL, LOCAL)),
            (_attend, (second, given, KEYS, BLOCK, GROUPS, STAGES, Q_SLOTS, REST, CAUSAL, LOCAL)),
            (_load, (inputs, given_out, buffers, barriers, grid, shared_by, mask,
                     Q_SLOTS, KEYS, GROUPS, STAGES, CAUSAL, LOCAL)),
        ], [4, 1], [REGISTERS, LITTLE])
    else:
        gl.static_assert(GROUPS == 3)
        third: constexpr = constexpr(2)
        gl.warp_specialize([
            (_attend, (first, given, KEYS, BLOCK, GROUPS, STAGES, Q_SLOTS, REST, CAUSAL, LOCAL)),
            (_attend, (second, given, KEYS, BLOCK, GROUPS, STAGES, Q_SLOTS, REST, CAUSAL, LOCAL)),
            (_attend, (third, given, KEYS, BLOCK, GROUPS, STAGES, Q_SLOTS, REST, CAUSAL, LOCAL)),
            (_load, (inputs, given_out, buffers, barriers, grid, shared_by, mask,
                     Q_SLOTS, KEYS, GROUPS, STAGES, CAUSAL, LOCAL)),
        ], [4, 4, 1], [REGISTERS, REGISTERS, LITTLE])
    # fmt: on


@gluon.jit
def _load(
    inputs,
    given_out,
    buffers,
    barriers,
    grid,
    shared_by,
    mask,
    Q_SLOTS: constexpr,
    KEYS: constexpr,
    GROUPS: constexpr,
    STAGES: constexpr,
    CAUSAL: constexpr,
    LOCAL: constexpr,
):
    """Fill the buffers: Q once for each block of queries, K and V tile after tile, the last keys
    first.

    Blocks are given out one by one, to whichever program asks: a fixed share for each would leave
    some 6 % behind.
    """
    q, k, v = inputs
    q_tiles, k_tiles, v_tiles, _output_tiles, work = buffers
    q_ready, q_free, k_ready, k_free, v_ready, v_free, work_ready, work_free = barriers
    loaded = 0
    turn = 0
    block = gl.program_id(0)
    while block < grid[1] * grid[3]:
        batch, head, row = tell(work, work_ready, work_free, turn, block, grid, mask[0], GROUPS)
        for group in gl.static_range(GROUPS):
            slot = turn % Q_SLOTS * GROUPS + group
            wait(q_free.index(slot), (turn // Q_SLOTS & 1) ^ 1)
            expect(q_ready.index(slot), q.block_type.nbytes)
            q_row = gl.maximum(row + group * ROWS, 0)
            async_copy_global_to_shared(
                q, [batch, head, q_row, 0], q_ready.index(slot), q_tiles.index(slot)
            )
        key_head = head // shared_by
        begin, end = tiles_seen(row, GROUPS, mask, KEYS, CAUSAL, LOCAL)
        for j in range(end - begin):
            column = (end - 1 - j) * KEYS
            slot = loaded % STAGES
            phase = loaded // STAGES & 1
            wait(k_free.index(slot), phase ^ 1)
            expect(k_ready.index(slot), k.block_type.nbytes)
            async_copy_global_to_shared(
                k, [batch, key_head, column, 0], k_ready.index(slot), k_tiles.index(slot)
            )
            wait(v_free.index(slot), phase ^ 1)
            expect(v_ready.index(slot), v.block_type.nbytes)
            async_copy_global_to_shared(
                v, [batch, key_head, column, 0], v_ready.index(slot), v_tiles.index(slot)
            )
            loaded += 1
        given = gl.atomic_add(given_out, 1, sem="relaxed")
        # Every program takes one too many: the last of all leaves the counter as it was.
        if given == grid[1] * grid[3] - 1:
            gl.atomic_xchg(given_out, 0, sem="relaxed")
        block = gl.num_programs(0) + given
        turn += 1
    tell(work, work_ready, work_free, turn, block, grid, mask[0], GROUPS)


@gluon.jit
def _attend(
    group: constexpr,
    given,
    KEYS: constexpr,
    BLOCK: constexpr,
    GROUPS: constexpr,
    STAGES: constexpr,
    Q_SLOTS: constexpr,
    REST: constexpr,
    CAUSAL: constexpr,
    LOCAL: constexpr,
):
    """Output and log-sum-exp of one warpgroup's 64 queries of every block."""
    output, lse, buffers, barriers, grid, mask, scale_log2 = given
    q_tiles, k_tiles, v_tiles, output_tiles, work = buffers
    q_ready, q_free, k_ready, k_free, v_ready, v_free, work_ready, work_free = barriers
    queries = mask[0]
    dtype: constexpr = output.dtype
    SCORES: constexpr = accumulator(KEYS)
    WIDTH: constexpr = BLOCK if REST == 0 else PART
    OUTPUT: constexpr = accumulator(WIDTH)
    WEIGHTS: constexpr = gl.DotOperandLayout(0, OUTPUT, 2)
    # Whether sums are rescaled only after a maximum has grown far. On an H200, TFLOP/s of 16 x
    # 1,024, 4 x 4,096 and 1 x 16,384 tokens, causal, so and always: 32 heads of 64 355 and 351, 507
    # and 495, 580 and 561; 16 heads of 128 469 and 456, 671 and 644, 744 and 714. Without a mask,
    # three warpgroups lose 1 to 2 % by it.
    LAZY: constexpr = CAUSAL or GROUPS == 2
    zeros = gl.zeros([ROWS, KEYS], gl.float32, SCORES)
    used = 0
    turn = 0
    block, batch, head, block_row = told(work, work_ready, work_free, turn)
    while block < grid[1] * grid[3]:
        row = block_row + group * ROWS
        q_slot = turn % Q_SLOTS * GROUPS + group
        block_begin, block_end = tiles_seen(block_row, GROUPS, mask, KEYS, CAUSAL, LOCAL)
        if row < 0:  # there are no such queries
            used = _let_go(block_end - block_begin, used, barriers, STAGES)
            wait(q_ready.index(q_slot), turn // Q_SLOTS & 1)
            arrive(q_free.index(q_slot))
        else:
            begin, end = tiles_seen(row, 1, mask, KEYS, CAUSAL, LOCAL)
            # The last tiles of the block may be seen by none of these 64 queries.
            used = _let_go(block_end - end, used, barriers, STAGES)

            # The first tile, alone: it lies on the diagonal or at the end, and it is the only one
            # that needs a mask, because KEYS is a multiple of ROWS, unless the offset is none or
            # there is a window.
            slot = used % STAGES
            phase = used // STAGES & 1
            q_tile = tile_at(q_tiles, q_slot)
            wait(q_ready.index(q_slot), turn // Q_SLOTS & 1)
            wait(k_ready.index(slot), phase)
            k_tile = tile_at(k_tiles, slot)
            scores = multiplied(q_tile, k_tile, zeros, False, REST)
            scores = warpgroup_mma_wait(0, deps=(scores,))
            arrive(k_free.index(slot))
            rows = row + gl.arange(0, ROWS, layout=gl.SliceLayout(1, SCORES))
            column = (end - 1) * KEYS
            # The branch is for the compiler: without it, it makes all comparisons before the
            # product is there, and packs their results into words, which takes as long as another
            # tile. Without a mask and with two warpgroups of 64 columns its order of the other
            # instructions is 4 % slower with the branch.
            if (not CAUSAL and GROUPS == 2 and BLOCK == PART) or hides(
                row, column, mask, KEYS, CAUSAL, LOCAL
            ):
                scores = masked(scores, rows, column, mask, KEYS, CAUSAL, LOCAL)
            maximum = gl.max(scores, 1) * scale_log2
            weights = gl.exp2(scores * scale_log2 - finite(maximum)[:, None])
            normaliser = gl.sum(weights, 1)
            operand = gl.convert_layout(weights.to(dtype), WEIGHTS)
            weighted = gl.zeros([ROWS, WIDTH], gl.float32, OUTPUT)
            rest = 0
            if REST:
                rest = gl.zeros([ROWS, REST], gl.float32, accumulator(REST))
            wait(v_ready.index(slot), phase)

            for j in range(end - begin - 1):
                used += 1
                next_slot = used % STAGES
                next_phase = used // STAGES & 1
                wait(k_ready.index(next_slot), next_phase)
                k_tile = tile_at(k_tiles, next_slot)
                scores = multiplied(q_tile, k_tile, zeros, False, REST)
                v_tile = tile_at(v_tiles, slot)
                weighted, rest = added(weighted, rest, operand, v_tile, REST)
                scores = warpgroup_mma_wait(2 if REST else 1, deps=(scores,))
                arrive(k_free.index(next_slot))
                if LOCAL:
                    column = (end - 2 - j) * KEYS
                    if hides(row, column, mask, KEYS, CAUSAL, LOCAL):
                        scores = masked(scores, rows, column, mask, KEYS, CAUSAL, LOCAL)
                new_maximum = grown(maximum, gl.max(scores, 1) * scale_log2, LAZY)
                shift = finite(new_maximum)
                weights = gl.exp2(scores * scale_log2 - shift[:, None])
                correction = gl.exp2(maximum - shift)
                normaliser = normaliser * correction + gl.sum(weights, 1)
                maximum = new_maximum
                # This wait comes here, and not where V is needed, for its branch: ptxas moves
                # nothing across one. Without it, it moves the exponentials below the next wait, and
                # the product with V hides none of them.
                wait(v_ready.index(next_slot), next_phase)
                weighted, rest = finished(weighted, rest, REST)
                if REST:
                    rest = rescaled(rest, correction, LAZY)
                arrive(v_free.index(slot))
                weighted = rescaled(weighted, correction, LAZY)
                operand = gl.convert_layout(weights.to(dtype), WEIGHTS)
                slot = next_slot

            if Q_SLOTS == 2:
                arrive(q_free.index(q_slot))
            v_tile = tile_at(v_tiles, slot)
            weighted, rest = added(weighted, rest, operand, v_tile, REST)
            gl.store(
                lse + (batch * grid[0] + head) * queries + rows,
                (maximum + gl.log2(normaliser)) * LN_2,
                rows < queries,
            )
            weighted, rest = finished(weighted, rest, REST)
            arrive(v_free.index(slot))
            used += 1
            if LOCAL:
                used = _let_go(begin - block_begin, used, barriers, STAGES)
            # A row of which every score is -inf has no weights; its output is 0.
            inverse = 1 / gl.where(normaliser == 0, 1.0, normaliser)
            weighted = weighted * gl.convert_layout(inverse, gl.SliceLayout(1, OUTPUT))[:, None]
            store_wait(0)  # of the block before, from the same buffer
            output_tile = tile_at(output_tiles, group)
            if REST:
                output_tile.slice(0, PART, 1).store(weighted.to(dtype))
                OF_REST: constexpr = gl.SliceLayout(1, rest.type.layout)
                rest = rest * gl.convert_layout(inverse, OF_REST)[:, None]
                output_tile.slice(PART, REST, 1).store(rest.to(dtype))
            else:
                output_tile.store(weighted.to(dtype))
            fence_async_shared()
            async_copy_shared_to_global(output, [batch, head, row, 0], output_tiles.index(group))
            if Q_SLOTS == 1:
                store_wait(0)
                arrive(q_free.index(q_slot))
        turn += 1
        block, batch, head, block_row = told(work, work_ready, work_free, turn)
    store_wait(0)


@gluon.jit
def _let_go(count, used, barriers, STAGES: constexpr):
    """Pass over so many tiles; returns how many have been used then."""
    _q_ready, _q_free, k_ready, k_free, v_ready, v_free, _work_ready, _work_free = barriers
    for _ in range(count):
        slot = used % STAGES
        phase = used // STAGES & 1
        wait(k_ready.index(slot), phase)
        arrive(k_free.index(slot))
        wait(v_ready.index(slot), phase)
        arrive(v_free.index(slot))
        used += 1
    return used
