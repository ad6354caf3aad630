"""PyTorch's AdamW with its default implementation: "foreach" (many parameters a kernel) on a
GPU."""

from collections.abc import Iterable

import torch
from torch import Tensor


def make(parameters: Iterable[Tensor], **settings) -> torch.optim.Optimizer:
    """PyTorch's AdamW over `parameters`. Raises ValueError when a setting is out of range."""
    return torch.optim.AdamW(parameters, **settings)
