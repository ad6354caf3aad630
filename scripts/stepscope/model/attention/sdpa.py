"""PyTorch's scaled dot product attention, which picks a fused kernel where it has one."""

import torch
import torch.nn.functional as F
from torch import Tensor

from stepscope.kernels import masks
from stepscope.model.about import Attention
from stepscope.model.ranges import named

ABOUT = Attention(
    label="fused attention (SDPA)",
    title="Fuse attention",
    recipe="`F.scaled_dot_product_attention(q, k, v, is_causal=True)`",
    masks_window=True,
)


def attention(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None
) -> Tensor:
    """See the package; softmax(Q K^T / sqrt(d_head)) V. A window is given to PyTorch as a mask
    of (queries x keys), which few of its kernels take.
    """
    masks.check(is_causal, window)
    grouped = q.ndim > 2 and q.shape[-3] != k.shape[-3]
    lengths = q.shape[-2], k.shape[-2]
    with named("fused attention"):
        seen: Tensor | None = None
        if is_causal and masks.mask_of(*lengths, is_causal, window).window:
            make = masks.visible if torch.compiler.is_compiling() else masks.kept_visible
            seen = make(*lengths, q.device, window)
            is_causal = False
        return F.scaled_dot_product_attention(
            q, k, v, seen, is_causal=is_causal, enable_gqa=grouped
        )
