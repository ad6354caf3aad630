"""Attention as the formula reads, with every intermediate in memory."""

from functools import lru_cache

import torch
from torch import Tensor

from stepscope.model.ranges import named
from stepscope.model.softmax import softmax


def attention(q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
    """softmax(Q K^T / sqrt(d_head)) V (Vaswani et al. 2017, equation 1).

    q: (..., queries, d_head); k: (..., keys, d_head); v: (..., keys, d_value). Returns (..., queries, d_value).
    With `is_causal`, query i sees keys 0 to i.
    """
    # Scaling Q costs (queries x d_head), scaling the scores would cost (queries x keys). Q and K are heads cut out of
    # one matrix: matmul would copy K transposed, element by element; a plain copy beforehand is cheaper.
    with named("attention scores"):
        scores = (q * q.shape[-1] ** -0.5) @ k.contiguous().transpose(-2, -1)
    if is_causal:
        # In place: the product does not need its result for the backward pass. Adding a constant has no backward work.
        with named("mask"):
            scores += mask_of(scores)
    with named("softmax"):
        weights = softmax(scores, dim=-1)
    with named("attention × V"):
        return weights @ v


def mask_of(scores: Tensor) -> Tensor:
    """(queries, keys) causal mask for `scores` (..., queries, keys): the kept one, or inside torch.compile a new one,
    which the compiler computes within its own kernels instead of reading it."""
    mask = causal_mask if torch.compiler.is_compiling() else kept_causal_mask
    return mask(scores.shape[-2], scores.shape[-1], scores.device, scores.dtype)


def causal_mask(queries: int, keys: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """(queries, keys): 0 where key <= query, -inf elsewhere; to be added to the scores."""
    return torch.full((queries, keys), float("-inf"), device=device, dtype=dtype).triu(diagonal=1)


# One mask serves every layer and every step. Only the latest is kept: a shorter context must not stay in the memory of
# the next one.
kept_causal_mask = lru_cache(maxsize=1)(causal_mask)
