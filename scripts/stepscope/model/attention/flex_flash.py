"""PyTorch's flex_attention with FlashAttention-4's kernels behind it, where flash-attn-4 is
installed."""

from functools import partial

import torch

from stepscope.kernels import rivals
from stepscope.model.about import Attention
from stepscope.model.attention import flex

ABOUT = Attention(
    label="FlexAttention by FlashAttention-4",
    title="FlexAttention by FlashAttention-4",
    mechanism="The context × context scores never reach memory.",
    recipe='`flex_attention(q, k, v, kernel_options={"BACKEND": "FLASH"})` under `torch.compile`',
    takes_away="scores",
    keeps="fused",
    masks_window=False,
)

check = rivals.check


def unsupported(device: torch.device, d_head: int | None) -> str | None:
    """See the package."""
    return rivals.unsupported(device, "flash_attn.cute", "flash-attn-4")


attention = partial(flex.attention, backend="FLASH")
