"""Which keys a query sees: all, those up to its own position, or the last few of these.

The position of query i is i + offset. Upper left, the offset is 0: query 0 stands beside key 0, as
PyTorch's `is_causal` and `causal_upper_left` have it. Lower right (`causal_lower_right`) it is keys
- queries: the last query stands beside the last key, as in generation with a cache of earlier keys.
A causal query sees the keys at its position and before; a window keeps the last `window` positions
of these, its own included (Beltagy et al. 2020, Longformer, section 3.1, of which this is the
causal half). Some queries may see no key at all.
"""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor


class Mask(NamedTuple):
    """Position of query 0, and how many keys a query sees at most; 0: as many as there are."""

    is_causal: bool
    offset: int
    window: int


def mask_of(
    queries: int, keys: int, is_causal: bool, window: int | None = None, lower_right: bool = False
) -> Mask:
    """The mask in as few words as it takes: a window that hides nothing is none."""
    offset = keys - queries if is_causal and lower_right else 0
    if window is None or window >= queries + offset:
        window = 0
    return Mask(is_causal, offset, window)


def check(is_causal: bool, window: int | None, lower_right: bool = False) -> None:
    """Raise ValueError, in one line, for a mask that means nothing."""
    if not is_causal and (window is not None or lower_right):
        what = "a window" if window is not None else "lower_right"
        raise ValueError(
            f"{what} needs is_causal=True: without it a query has no position among the keys"
        )
    if window is not None and (not isinstance(window, (int, torch.SymInt)) or window < 1):
        raise ValueError(
            f"window is the number of keys that a query sees, at least 1, not {window}"
        )


def blind(queries: int, keys: int, mask: Mask) -> tuple[int, int]:
    """(a, b): queries before a and queries from b on see no key; those between see one at least."""
    if not mask.is_causal:
        return 0, queries
    a = min(queries, max(0, -mask.offset))
    b = min(queries, keys - mask.offset + mask.window - 1) if mask.window else queries
    return a, max(a, b)


def visible(
    queries: int, keys: int, device: torch.device, window: int | None, lower_right: bool = False
) -> Tensor:
    """(queries, keys) bool: whether a query sees a key, causal."""
    mask = mask_of(queries, keys, True, window, lower_right)
    seen = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(mask.offset)
    return seen.triu(mask.offset - mask.window + 1) if mask.window else seen


# One mask serves every layer and every step. Only the latest is kept: a shorter context must not
# stay in memory.
kept_visible = lru_cache(maxsize=1)(visible)
