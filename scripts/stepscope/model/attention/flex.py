"""PyTorch's flex_attention: a kernel that the compiler writes for the mask it is given."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from stepscope.kernels import masks
from stepscope.kernels.shapes import as_4d
from stepscope.model.about import Attention
from stepscope.model.compilation import compiled
from stepscope.model.ranges import named

ABOUT = Attention(
    label="FlexAttention",
    title="FlexAttention",
    recipe="`torch.compile(flex_attention)(q, k, v, block_mask=create_block_mask(causal, ...))`",
)


def unsupported(device: torch.device, d_head: int | None) -> str | None:
    """See the package."""
    return None if device.type == "cuda" else "flex trains on a GPU only"


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    is_causal: bool,
    window: int | None = None,
    backend: str = "",
) -> Tensor:
    """See the package; softmax(Q K^T / sqrt(d_head)) V. backend: of the kernels, where it is not
    PyTorch's choice."""
    masks.check(is_causal, window)
    with named("fused attention"):
        # It takes (batch, heads, length, d_head) and nothing else.
        four = [as_4d(x) for x in (q, k, v)]
        mask = None
        if is_causal:
            lengths = q.shape[-2], k.shape[-2]
            seen = masks.mask_of(*lengths, is_causal, window)
            mask = kept_causal_mask(*lengths, q.device, seen.window)
        # Within a compiled model the compiler meets it anyway; by itself, uncompiled, it would
        # store all scores.
        attend: Callable[..., Any] = flex_attention
        if not torch.compiler.is_compiling():
            attend = compiled(flex_attention)
        grouped = four[0].shape[1] != four[1].shape[1]
        more = {"kernel_options": {"BACKEND": backend}} if backend else {}
        attended = attend(*four, block_mask=mask, enable_gqa=grouped, **more)
        return attended.reshape(*q.shape[:-1], v.shape[-1])


def kept_causal_mask(queries: int, keys: int, device: torch.device, window: int) -> BlockMask:
    """Which blocks of keys a block of queries sees, and where within a block: key <= query and the
    like."""
    _keep_causal_mask(queries, keys, device, window)
    return _kept[queries, keys, device, window]


# One mask serves every layer and every step. Only the latest is kept, as in naive attention.
_kept: dict[tuple, BlockMask] = {}


# torch.compile runs it, instead of making the mask anew in every layer
@torch.compiler.assume_constant_result
def _keep_causal_mask(queries: int, keys: int, device: torch.device, window: int) -> None:
    key = (queries, keys, device, window)
    if key not in _kept:
        _kept.clear()
        _kept[key] = create_block_mask(
            _sees(window), B=None, H=None, Q_LEN=queries, KV_LEN=keys, device=device
        )


def _sees(window: int):
    """The mask as flex_attention wants it: a function of one query and one key."""
    if window:
        return lambda batch, head, query, key: (query >= key) & (query < key + window)
    return lambda batch, head, query, key: query >= key
