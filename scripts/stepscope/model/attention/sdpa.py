"""PyTorch's scaled dot product attention, which picks a fused kernel where it has one."""

import torch.nn.functional as F
from torch import Tensor

from stepscope.model.ranges import named


def attention(q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
    """softmax(Q K^T / sqrt(d_head)) V (Vaswani et al. 2017, equation 1).

    q: (..., queries, d_head); k: (..., keys, d_head); v: (..., keys, d_value). Returns (..., queries, d_value).
    With `is_causal`, query i sees keys 0 to i.
    """
    with named("fused attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
