"""Attention as the formula reads, with every intermediate in memory."""

from functools import lru_cache

import torch
from torch import Tensor

from stepscope.kernels import masks
from stepscope.model.about import Attention
from stepscope.model.ranges import named
from stepscope.model.softmax import softmax

ABOUT = Attention(label="attention written out", keeps="scores", mechanism="", takes_away="")


def attention(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None
) -> Tensor:
    """See the package; softmax(Q K^T / sqrt(d_head)) V."""
    masks.check(is_causal, window)
    # The queries that share keys can stand one after the other: K and V need not be repeated.
    sharing = q.shape[-3] // k.shape[-3] if q.ndim > 2 else 1
    # Scaling Q costs (queries x d_head), scaling the scores would cost (queries x keys). Q and K
    # are heads cut out of one matrix: matmul would copy K transposed, element by element; a plain
    # copy beforehand is cheaper.
    with named("attention scores"):
        # A name would keep the copies in memory until the function returns.
        scores = parted(
            joined(q * q.shape[-1] ** -0.5, sharing) @ k.contiguous().transpose(-2, -1), sharing
        )
    if is_causal:
        # In place: the product does not need its result for the backward pass. Adding a constant
        # has no backward work.
        with named("mask"):
            # Inside torch.compile a new one: the compiler computes it within its own kernels
            # instead of reading it.
            make = causal_mask if torch.compiler.is_compiling() else kept_causal_mask
            scores += make(q.shape[-2], k.shape[-2], scores.device, scores.dtype, window)
    with named("softmax"):
        weights = softmax(scores, dim=-1)
    with named("attention × V"):
        return parted(joined(weights, sharing) @ v, sharing)


def joined(x: Tensor, sharing: int) -> Tensor:
    """(..., heads, queries, n) as (..., heads / sharing, sharing * queries, n)."""
    if sharing == 1:
        return x
    return x.unflatten(-3, (x.shape[-3] // sharing, sharing)).flatten(-3, -2)


def parted(x: Tensor, sharing: int) -> Tensor:
    """The inverse of `joined`."""
    if sharing == 1:
        return x
    return x.unflatten(-2, (sharing, x.shape[-2] // sharing)).flatten(-4, -3)


def causal_mask(
    queries: int, keys: int, device: torch.device, dtype: torch.dtype, window: int | None
) -> Tensor:
    """(queries, keys): 0 where a query sees the key, -inf elsewhere; to be added to the scores."""
    hidden = torch.full((queries, keys), float("-inf"), device=device, dtype=dtype)
    added = hidden.triu(diagonal=1)
    if window and window < queries:
        added += hidden.tril(diagonal=-window)
    return added


# One mask serves every layer and every step. Only the latest is kept: a shorter context must not
# stay in the memory of the next one.
kept_causal_mask = lru_cache(maxsize=1)(causal_mask)
