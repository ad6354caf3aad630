"""PyTorch's AdamW with its default implementation: "foreach" (many parameters a kernel) on a GPU."""

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
    """PyTorch's AdamW over `parameters`. Raises ValueError when a setting is out of range."""
    return torch.optim.AdamW(parameters, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
