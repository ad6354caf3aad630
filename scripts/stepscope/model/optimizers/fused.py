"""PyTorch's fused AdamW: the whole update of many parameters in one kernel."""

from collections.abc import Iterable

import torch
from torch import Tensor

from stepscope.model.optimizers import BETAS, EPSILON, LEARNING_RATE, WEIGHT_DECAY


def make(
    parameters: Iterable[Tensor],
    lr: float = LEARNING_RATE,
    betas: tuple[float, float] = BETAS,
    eps: float = EPSILON,
    weight_decay: float = WEIGHT_DECAY,
) -> torch.optim.Optimizer:
    """PyTorch's fused AdamW over `parameters`. Raises ValueError when a setting is out of range."""
    return torch.optim.AdamW(parameters, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, fused=True)
