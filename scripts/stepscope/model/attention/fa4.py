"""FlashAttention-4, of the package flash-attn-4 where it is installed: from Hopper GPUs on."""

from importlib import import_module

import torch
from torch import Tensor

from stepscope.kernels import rivals
from stepscope.model.about import Attention
from stepscope.model.ranges import named

ABOUT = Attention(
    label="FlashAttention-4",
    title="FlashAttention-4",
    mechanism="The context × context scores never reach memory.",
    recipe="`from flash_attn.cute import flash_attn_func`",
    takes_away="scores",
    keeps="fused",
    masks_window=False,
)
MODULE, PACKAGE = "flash_attn.cute", "flash-attn-4"

check = rivals.check


def unsupported(device: torch.device, d_head: int | None) -> str | None:
    """See the package."""
    return rivals.unsupported(device, MODULE, PACKAGE)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    is_causal: bool,
    window: int | None = None,
    lower_right: bool = False,
) -> Tensor:
    """See the package; a causal mask is for as many queries as keys, or for the lower right."""
    with named("fused attention"):
        function = import_module(MODULE).flash_attn_func
        return rivals.attend(function, (q, k, v), is_causal, window, lower_right)
