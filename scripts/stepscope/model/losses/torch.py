"""PyTorch's cross-entropy: the log-softmax of all logits in fp32, and what its gradient needs."""

import torch.nn.functional as F
from torch import Tensor

from stepscope.model.about import Loss
from stepscope.model.losses import of_logits

ABOUT = Loss(
    label="PyTorch's cross-entropy",
    title="PyTorch's cross-entropy",
    mechanism="It casts the logits to fp32, takes their log-softmax, and keeps that.",
    recipe="`F.cross_entropy(logits.flatten(0, -2), targets.flatten())`",
    keeps="log-softmax",
)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """logits: (..., vocab_size); targets: (...)."""
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


loss = of_logits(cross_entropy)
