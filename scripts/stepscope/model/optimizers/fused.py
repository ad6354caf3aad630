"""PyTorch's fused AdamW: the whole update of many parameters in one kernel."""

from collections.abc import Iterable

import torch
from torch import Tensor

from stepscope.model.about import Optimizer

ABOUT = Optimizer(
    label="fused AdamW",
    title="Fuse AdamW",
    mechanism="One pass updates each number, instead of one operation after another.",
    recipe="`torch.optim.AdamW(parameters, fused=True)`",
    takes_away="optimizer",
    state=2,
    workspace="",
)


def make(parameters: Iterable[Tensor], **settings) -> torch.optim.Optimizer:
    """PyTorch's fused AdamW over `parameters`. Raises ValueError when a setting is out of range."""
    return torch.optim.AdamW(parameters, fused=True, **settings)
