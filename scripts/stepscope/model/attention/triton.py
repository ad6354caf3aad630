"""FlashAttention-2 in Triton (stepscope.kernels): no tensor of (queries x keys), on a GPU only."""

from torch import Tensor

from stepscope.kernels import fused
from stepscope.model.ranges import named


def attention(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None, lower_right: bool = False
) -> Tensor:
    """softmax(Q K^T / sqrt(d_head)) V (Vaswani et al. 2017, equation 1).

    q: (..., heads, queries, d_head); k and v: (..., key heads, keys, d_head), where the number of key heads divides
    that of heads. Returns (..., heads, queries, d_head). With `is_causal`, query i sees keys 0 to i; `window` and
    `lower_right` as in `stepscope.kernels.masks`. Raises ValueError, in one line, for what the kernels or the device
    cannot run.
    """
    with named("fused attention"):
        return fused.attention(q, k, v, is_causal, window, lower_right)
