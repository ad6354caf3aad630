"""PyTorch's fused AdamW: the whole update of many parameters in one kernel."""

from collections.abc import Iterable

import torch
from torch import Tensor


def make(parameters: Iterable[Tensor], **settings) -> torch.optim.Optimizer:
    """PyTorch's fused AdamW over `parameters`. Raises ValueError when a setting is out of range."""
    return torch.optim.AdamW(parameters, fused=True, **settings)
