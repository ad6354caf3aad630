"""Which queries a program of the forward pass for Hopper GPUs attends to next, and which tiles of
keys they see."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language import constexpr
from triton.experimental.gluon.language.nvidia.hopper.mbarrier import arrive, wait

from .tiles import HOPPER_ROWS

ROWS = constexpr(HOPPER_ROWS)  # queries of a warpgroup
TOLD = constexpr(4)  # numbers that tell a block


@gluon.jit
def tell(work, work_ready, work_free, turn, block, grid, queries, GROUPS: constexpr):
    """Let the other warps know the number of their next block and where it lies, so that only one
    warp divides.

    Returns what `told` does, without the number.
    """
    layout: constexpr = gl.BlockedLayout([TOLD], [32], [1], [0])
    batch, head, row = _place(block, grid, queries, GROUPS)
    i = gl.arange(0, TOLD, layout=layout)
    numbers = gl.where(i == 0, block, gl.where(i == 1, batch, gl.where(i == 2, head, row)))
    wait(work_free.index(turn & 1), (turn >> 1 & 1) ^ 1)
    work.index(turn & 1).store(numbers)
    arrive(work_ready.index(turn & 1))
    return batch, head, row


@gluon.jit
def told(work, work_ready, work_free, turn):
    """(number, batch, head, first query) of the next block, from the loading warp."""
    layout: constexpr = gl.BlockedLayout([TOLD], [32], [4], [0])
    wait(work_ready.index(turn & 1), turn >> 1 & 1)
    numbers = work.index(turn & 1).load(layout)
    arrive(work_free.index(turn & 1))
    i = gl.arange(0, TOLD, layout=layout)
    return _at(0, numbers, i), _at(1, numbers, i), _at(2, numbers, i), _at(3, numbers, i)


@gluon.jit
def _at(which: constexpr, numbers, i):
    return gl.sum(gl.where(i == which, numbers, 0), 0)


@gluon.jit
def _place(block, grid, queries, GROUPS: constexpr):
    """(batch, head, first query) of a block of queries. The first block may begin before the first
    query.

    As many sequences at a time as have their keys and values in the L2 cache together; of those,
    the last queries go first: they see the most keys, and no long piece of work is left when all
    others are done.
    """
    heads, sequences, cached, blocks = grid
    first = block // (cached * blocks) * cached
    rest = block % (cached * blocks)
    number = gl.minimum(cached, sequences - first)
    sequence = first + rest % number
    row = (queries + ROWS - 1) // ROWS * ROWS - (rest // number + 1) * (GROUPS * ROWS)
    return sequence // heads, sequence % heads, row


@gluon.jit
def tiles_seen(row, groups: constexpr, mask, KEYS: constexpr, CAUSAL: constexpr, LOCAL: constexpr):
    """(begin, end) of the tiles of keys that the queries of so many warpgroups see, from `row` on.

    Every warpgroup meets one tile at least, for queries that see no key, and those of a block lie
    within the block's.
    """
    _queries, keys, offset, window = mask
    if not CAUSAL:
        return 0, (keys + KEYS - 1) // KEYS
    end = _tile_count(gl.minimum(keys, row + groups * ROWS + offset), KEYS)
    if not LOCAL:
        return 0, end
    first = gl.minimum(
        gl.maximum(row + offset - window + 1, 0) // KEYS,
        _tile_count(gl.minimum(keys, row + ROWS + offset), KEYS) - 1,
    )
    return gl.where(window > 0, first, 0), end


@gluon.jit
def _tile_count(keys, KEYS: constexpr):
    return (gl.maximum(keys, 1) + KEYS - 1) // KEYS
