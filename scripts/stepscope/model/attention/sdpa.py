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
    mechanism="The context × context scores never reach memory.",
    recipe="`F.scaled_dot_product_attention(q, k, v, is_causal=True)`",
    takes_away="scores",
    keeps="fused",
    masks_window=True,
)


def attention(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None
) -> Tensor:
    """See the package; softmax(Q K^T / sqrt(d_head)) V. A window is given to PyTorch as a mask
    of (queries x keys), which few of its kernels take.
    """
    masks.check(is_causal, window, lower_right=False)
    grouped = q.ndim > 2 and q.shape[-3] != k.shape[-3]
    queries = q.shape[-2]
    keys = k.shape[-2]
    with named("fused attention"):
        seen: Tensor | None = None
        is_plain = masks.is_plain(queries, keys, window, lower_right=False)
        if is_causal and not is_plain:
            make = masks.visible if torch.compiler.is_compiling() else masks.kept_visible
            seen = make(queries, keys, q.device, window, lower_right=False)
        return F.scaled_dot_product_attention(
            q, k, v, seen, is_causal=is_causal and is_plain, enable_gqa=grouped
        )
