"""PyTorch's flex_attention: a kernel that the compiler writes for the mask it is given."""

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from stepscope.model.ranges import named


def attention(q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
    """softmax(Q K^T / sqrt(d_head)) V (Vaswani et al. 2017, equation 1).

    q: (..., queries, d_head); k: (..., keys, d_head); v: (..., keys, d_value). Returns (..., queries, d_value).
    With `is_causal`, query i sees keys 0 to i.
    """
    with named("fused attention"):
        # It takes (batch, heads, length, d_head) and nothing else.
        four = [x.flatten(0, -4) if x.ndim > 4 else x[(None,) * (4 - x.ndim)] for x in (q, k, v)]
        mask = kept_causal_mask(q.shape[-2], k.shape[-2], q.device) if is_causal else None
        # Within a compiled model the compiler meets it anyway; by itself, uncompiled, it would store all scores.
        attend = flex_attention if torch.compiler.is_compiling() else compiled_flex_attention()
        return attend(*four, block_mask=mask).reshape(*q.shape[:-1], v.shape[-1])


@lru_cache(maxsize=1)
def compiled_flex_attention():
    """flex_attention, compiled for each shape that it meets."""
    return torch.compile(flex_attention, dynamic=False)


def kept_causal_mask(queries: int, keys: int, device: torch.device) -> BlockMask:
    """Which blocks of keys a block of queries sees, and where within a block: key <= query."""
    _keep_causal_mask(queries, keys, device)
    return _kept[queries, keys, device]


# One mask serves every layer and every step. Only the latest is kept, as in naive attention.
_kept: dict[tuple[int, int, torch.device], BlockMask] = {}


@torch.compiler.assume_constant_result  # torch.compile runs it, instead of making the mask anew in every layer
def _keep_causal_mask(queries: int, keys: int, device: torch.device) -> None:
    if (queries, keys, device) not in _kept:
        _kept.clear()
        _kept[queries, keys, device] = create_block_mask(
            lambda batch, head, query, key: query >= key, B=None, H=None, Q_LEN=queries, KV_LEN=keys, device=device
        )
