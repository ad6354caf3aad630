"""FlashAttention-2 in Triton (stepscope.attention): no tensor of (queries x keys), on a GPU only."""

from torch import Tensor

from stepscope.attention import fused
from stepscope.model.ranges import named


def attention(q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
    """softmax(Q K^T / sqrt(d_head)) V (Vaswani et al. 2017, equation 1).

    q: (..., queries, d_head); k and v: (..., keys, d_head). Returns (..., queries, d_head). With `is_causal`, query i
    sees keys 0 to i. Raises ValueError, in one line, for what the kernels or the device cannot run.
    """
    with named("fused attention"):
        return fused.attention(q, k, v, is_causal)
