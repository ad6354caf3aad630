"""FlashAttention-2 in Triton (stepscope.kernels): no tensor of (queries x keys), on a GPU only."""

from typing import Any

import torch
from torch import Tensor

from stepscope.kernels import fused
from stepscope.model.about import Attention
from stepscope.model.ranges import named

ABOUT = Attention(
    label="own Triton attention",
    title="own Triton attention",
    recipe="`stepscope.kernels.fused.attention(q, k, v, True)`",
)

check = fused.operands.check


def unsupported(device: torch.device, d_head: int | None) -> str | None:
    """See the package."""
    wrong = fused.operands.wrong_head(d_head) if d_head else None
    return fused.unsupported(device) or wrong


def attention(*given: Any, **mask: Any) -> Tensor:
    """See the package; softmax(Q K^T / sqrt(d_head)) V.

    d_value is d_head. Raises ValueError, in one line, for what the kernels or the device cannot
    run.
    """
    with named("fused attention"):
        return fused.attention(*given, **mask)
