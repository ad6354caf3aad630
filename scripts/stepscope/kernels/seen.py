"""Which tiles of keys the queries of a tile see, and which tiles of queries see those of keys.

What is seen comes in three parts, each a range of rows in steps of whole tiles: one that a mask
cuts, one where every query sees every key, and one that a mask cuts again. Only tiles on the
diagonal, at the far end of the window, and the last, shorter one pay for a mask.
"""

import triton
import triton.language as tl
from triton.language import constexpr

WHOLE = constexpr(1)  # the part in which every query sees every key


@triton.jit
def keys_seen(
    position,
    keys,
    window,
    QUERIES: constexpr,
    KEYS: constexpr,
    CAUSAL: constexpr,
    WINDOWED: constexpr,
):
    """(begins, ends) of the three parts of keys that the queries of a tile see, the first of which
    has this position. Without a window nothing is in the first part."""
    if not CAUSAL:
        whole = keys // KEYS * KEYS
        return (0, 0, whole), (0, whole, keys)
    end = tl.minimum(keys, position + QUERIES)
    full = tl.maximum(tl.minimum(keys, position + 1), 0) // KEYS * KEYS
    if not WINDOWED:
        return (0, 0, full), (0, full, end)
    begin = tl.maximum(position - window + 1, 0) // KEYS * KEYS
    unmasked = tl.cdiv(tl.maximum(position + QUERIES - window, 0), KEYS) * KEYS
    return (begin, unmasked, tl.maximum(unmasked, full)), (tl.minimum(unmasked, end), full, end)


@triton.jit
def queries_seeing(
    column,
    queries,
    offset,
    window,
    QUERIES: constexpr,
    KEYS: constexpr,
    CAUSAL: constexpr,
    WINDOWED: constexpr,
):
    """(begins, ends) of the three parts of queries that see the keys of a tile, the first of which
    is `column`. Without a window nothing is in the last part.

    Keys beyond the last one need no mask: what they get stays in their own rows, and is not
    written.
    """
    first = tl.maximum(column - offset, 0) // QUERIES * QUERIES if CAUSAL else 0
    unmasked = tl.cdiv(tl.maximum(column + KEYS - offset, 0), QUERIES) * QUERIES if CAUSAL else 0
    if not WINDOWED:
        return (first, unmasked, queries), (tl.minimum(unmasked, queries), queries, queries)
    end = tl.minimum(queries, tl.maximum(column + KEYS - 1 + window - offset, 0))
    full = tl.maximum(column + window - offset, 0) // QUERIES * QUERIES
    begins = first, unmasked, tl.maximum(unmasked, full)
    return begins, (tl.minimum(unmasked, end), tl.minimum(full, end), end)


@triton.jit
def see(positions, columns, keys, window, CAUSAL: constexpr, WINDOWED: constexpr):
    """Whether the queries at these positions see these keys, (queries, keys)."""
    seen = (columns < keys)[None, :]
    if CAUSAL:
        seen = seen & (columns[None, :] <= positions[:, None])
    if WINDOWED:
        seen = seen & (columns[None, :] > positions[:, None] - window)
    return seen


@triton.jit
def seen_by(columns, positions, window, WINDOWED: constexpr):
    """Whether these keys are seen by the causal queries at these positions, (keys, queries)."""
    seen = columns[:, None] <= positions[None, :]
    if WINDOWED:
        seen = seen & (columns[:, None] > positions[None, :] - window)
    return seen
