"""PyTorch's AdamW with its default implementation: "foreach" (many parameters a kernel) on a
GPU."""

from collections.abc import Iterable

import torch
from torch import Tensor

from stepscope.model.about import Optimizer

# "foreach" runs each operation over all parameters, and keeps the roots of all second moments.
ABOUT = Optimizer(
    label="PyTorch's default AdamW",
    title="PyTorch's own AdamW",
    mechanism="It works on lists of tensors, many a kernel.",
    recipe="`torch.optim.AdamW(parameters)`",
    state=2,
    workspace="parameters",
)


def make(parameters: Iterable[Tensor], **settings) -> torch.optim.Optimizer:
    """PyTorch's AdamW over `parameters`. Raises ValueError when a setting is out of range."""
    return torch.optim.AdamW(parameters, **settings)
