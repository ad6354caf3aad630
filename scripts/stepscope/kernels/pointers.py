"""Tiles of one head, read and written through pointers: the way that every GPU has."""

import triton
import triton.language as tl
from triton.language import constexpr

# Arguments that vary from call to call: code for some values of them would be other code, but no
# faster.
VARYING = ["heads", "queries", "keys", "offset", "window"]


@triton.jit
def head_of(x, strides, sequence, heads):
    """Pointer to the first element of a sequence, batch * heads + head, of a 4D tensor with these
    strides."""
    return (
        x
        + (sequence // heads).to(tl.int64) * strides[0]
        + (sequence % heads).to(tl.int64) * strides[1]
    )


@triton.jit
def load_tile(
    head,
    strides,
    row,
    length,
    ROWS: constexpr,
    D_HEAD: constexpr,
    BLOCK: constexpr,
    CUT: constexpr,
):
    """Rows `row` to `row` + ROWS of a head, (ROWS, BLOCK), with zeros beyond D_HEAD.

    CUT: some of the rows may lie beyond `length`; they are zeros too.
    """
    rows, columns = row + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    tile = head + rows.to(tl.int64)[:, None] * strides[2] + columns[None, :]
    if CUT:
        return tl.load(tile, (rows < length)[:, None] & (columns < D_HEAD)[None, :], 0.0)
    elif BLOCK == D_HEAD:
        return tl.load(tile)
    else:
        return tl.load(tile, (columns < D_HEAD)[None, :], 0.0)


@triton.jit
def store_tile(
    head,
    strides,
    row,
    length,
    values,
    ROWS: constexpr,
    D_HEAD: constexpr,
    BLOCK: constexpr,
):
    """Write `values`, (ROWS, BLOCK), to the rows from `row` on, up to `length` and D_HEAD."""
    rows, columns = row + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    tile = head + rows.to(tl.int64)[:, None] * strides[2] + columns[None, :]
    inside = (rows < length)[:, None] & (columns < D_HEAD)[None, :]
    tl.store(tile, values.to(head.dtype.element_ty), inside)
