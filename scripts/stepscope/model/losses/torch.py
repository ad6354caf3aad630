"""PyTorch's cross-entropy: the log-softmax of all logits in fp32, and what its gradient needs."""

import torch.nn.functional as F
from torch import Tensor

from stepscope.model.about import Loss
from stepscope.model.ranges import named
from stepscope.model.transformer import TransformerLM

ABOUT = Loss(
    label="PyTorch's cross-entropy",
    title="PyTorch's cross-entropy",
    mechanism="It casts the logits to fp32, takes their log-softmax, and keeps that.",
    recipe="`F.cross_entropy(logits.flatten(0, -2), targets.flatten())`",
    keeps="log-softmax",
)


def loss(model: TransformerLM, tokens: Tensor, targets: Tensor) -> Tensor:
    """See the package."""
    logits = model(tokens)
    with named("loss"):
        return cross_entropy(logits, targets)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """logits: (..., vocab_size); targets: (...)."""
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())
