"""What the backward passes for Hopper GPUs have in common: the order of programs, and how they add
up dQ in turns.

The additions are ordered, so that the same inputs give the same bits: a counter for each tile of
queries says whose turn it is. The first to contribute is the program of the first keys that the
tile sees; it stores, so that nothing has to be zeroed before. All begin with the last queries, and
the programs of the first keys, which go over the most queries, come first in the grid: no long one
is left when all others are done, who waits waits for one that has begun, and with several sequences
at a time the one before is some steps ahead.
"""

from triton._C.libtriton import ir
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language import constexpr
from triton.experimental.gluon.language._core import builtin


@gluon.jit
def begun_at(program, together, key_tiles, sequences):
    """(sequence of keys, tile of its keys) of a program: so many sequences at a time, the first
    keys of all first."""
    begun = program // (together * key_tiles) * together
    rest = program - begun * key_tiles
    number = gl.minimum(together, sequences - begun)
    return begun + rest % number, rest // number


@gluon.jit
def tiles_that_see(
    key_tile,
    query_tiles,
    offset,
    window,
    QUERIES: constexpr,
    KEYS: constexpr,
    CAUSAL: constexpr,
    WINDOWED: constexpr,
):
    """The first tile of queries that sees a key of a tile, and the end of those that do; there may
    be none."""
    first_tile = 0
    end_tile = query_tiles
    if CAUSAL:
        first_tile = gl.minimum(gl.maximum(key_tile * KEYS - offset, 0) // QUERIES, query_tiles)
    if WINDOWED:
        last = (key_tile + 1) * KEYS - 1 + window - 1 - offset
        end_tile = gl.maximum(
            gl.minimum(gl.maximum(last + QUERIES, 0) // QUERIES, query_tiles), first_tile
        )
    return first_tile, end_tile


@gluon.jit
def only_seen(
    scores,
    position,
    columns,
    key_tile,
    keys,
    keys_end_here,
    window,
    QUERIES: constexpr,
    KEYS: constexpr,
    CAUSAL: constexpr,
    WINDOWED: constexpr,
):
    """Transposed scores, (keys, queries), -inf where a query does not see a key.

    position: of the first query. columns: the keys of this warpgroup, of the program's tile of
    keys. keys_end_here: whether this tile reaches beyond the last key, which is known before the
    loop over queries.
    """
    masked = keys_end_here | (CAUSAL and position < (key_tile + 1) * KEYS)
    if WINDOWED:
        masked = masked | (position + QUERIES > key_tile * KEYS + window)
    if masked:
        layout: constexpr = gl.SliceLayout(0, scores.type.layout)
        positions = position + gl.arange(0, QUERIES, layout=layout)
        last = gl.minimum(positions, keys - 1) if CAUSAL else positions * 0 + (keys - 1)
        scores = gl.where(columns[:, None] <= last[None, :], scores, float("-inf"))
        if WINDOWED:
            first = positions - window
            scores = gl.where(columns[:, None] > first[None, :], scores, float("-inf"))
    return scores


@gluon.jit
def end_of(steps, SHARED: constexpr):
    """Where the count of a program's tiles of queries ends, which begins with its first one."""
    first, end, shared_by = steps
    return first + (end - first) * shared_by if SHARED else end


@gluon.jit
def tile_of(n, steps, SHARED: constexpr):
    """(which of the heads that share the keys, tile of its queries): all heads' last tiles first.

    One head after the other, the programs of the last keys, which are seen by few queries, would
    reach the second head soon and wait there for the turn of all who are not through with the
    first.
    """
    first, end, shared_by = steps
    if SHARED:
        return (n - first) % shared_by, end - 1 - (n - first) // shared_by
    return 0, first + end - 1 - n


# Every thread reads: one that reads for all has to tell the others, and the sooner a turn is seen
# the less do programs wait that follow each other. On an H200, 16 heads of 128, TFLOP/s of 4 x
# 4,096 and 1 x 16,384 tokens: 531 and 601 instead of 514 and 572.
_UNTIL = constexpr(
    "{ .reg .pred early; .reg .s32 taken;"
    " again: ld.acquire.gpu.global.s32 taken, [$1]; setp.lt.s32 early, taken, $2; @early bra again;"
    " mov.b32 $0, taken; }"
)


@gluon.jit
def wait_for_turn(turn, number):
    """Until so many programs have added to a tile, and what they added can be read by TMA."""
    address = turn.to(gl.int64, bitcast=True)
    taken = gl.inline_asm_elementwise(
        _UNTIL, "=r,l,r", [address, number], dtype=gl.int32, is_pure=False, pack=1
    )
    _in_order("fence.proxy.async.global;", taken)


@gluon.jit
def end_turn(turn, anything):
    """The next one's turn, when what TMA was told to add is in memory, for which `tma.store_wait`
    does not wait."""
    _in_order("cp.async.bulk.wait_group 0;", anything)
    gl.atomic_add(turn, 1, sem="release")


@builtin
def async_add_shared_to_global(tensor_desc, coord, src, _semantic=None):
    """What `tma.async_copy_shared_to_global` is to a copy, for an addition (`async_atomic_add` of
    later Tritons)."""
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    _semantic.builder.create_async_tma_reduce(
        ir.DESCRIPTOR_REDUCE_KIND.ADD, tensor_desc.handle, coord, src.handle
    )


@gluon.jit
def _in_order(instruction: constexpr, anything):
    """An instruction of PTX between the operations before and those after."""
    gl.inline_asm_elementwise(
        instruction + " mov.b32 $0, $1;", "=r,r", [anything], dtype=gl.int32, is_pure=False, pack=1
    )
