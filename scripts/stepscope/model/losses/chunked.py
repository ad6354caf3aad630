"""LM head and cross-entropy a few tokens at a time: no tensor of (tokens x vocabulary).

The gradients of what the head is given and of its weight are made in the forward pass, while a
chunk's logits are there; the backward pass multiplies them by the loss's own gradient (as Hsu et
al. 2024, Liger Kernel, section 3.2).
"""

import torch
from torch import Tensor

from stepscope.model.about import Loss
from stepscope.model.compilation import compiled
from stepscope.model.ranges import named
from stepscope.model.transformer import TransformerLM

from . import CHUNK

ABOUT = Loss(
    label="head and loss in chunks",
    title="Head and loss in chunks",
    mechanism="The logits of all tokens are never in memory at once; the head's gradients are made"
    " in the forward pass.",
    recipe="`liger_kernel.transformers.LigerFusedLinearCrossEntropyLoss`",
    keeps="in-chunks",
    is_fused=True,
)
IS_COMPILED = True


def loss(model: TransformerLM, tokens: Tensor, targets: Tensor) -> Tensor:
    """See the package."""
    hidden = model(tokens, with_head=False)
    return _HeadAndLoss.apply(hidden.flatten(0, -2), model.head.weight, targets.flatten())


class _HeadAndLoss(torch.autograd.Function):
    """hidden: (tokens, d_model); weight: (vocab_size, d_model); targets: (tokens,)."""

    @staticmethod
    def forward(ctx, hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        device = hidden.device.type
        is_autocast = torch.is_autocast_enabled(device)
        low = torch.get_autocast_dtype(device) if is_autocast else hidden.dtype
        low_weight = weight.to(low)
        of_hidden = torch.empty_like(hidden, dtype=low)
        of_weight = torch.zeros_like(weight)
        total = torch.zeros((), dtype=torch.promote_types(low, torch.float32), device=hidden.device)
        for first in range(0, len(targets), CHUNK):
            rows = slice(first, first + CHUNK)
            given = hidden[rows].to(low)
            total += _add_chunk(
                given, low_weight, targets[rows], of_hidden[rows], of_weight, 1 / len(targets)
            )
        ctx.save_for_backward(of_hidden, of_weight)
        ctx.dtype = hidden.dtype
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        of_hidden, of_weight = ctx.saved_tensors
        return of_hidden.to(ctx.dtype).mul_(gradient), of_weight.mul_(gradient), None


def _add_chunk(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    of_hidden: Tensor,
    of_weight: Tensor,
    share: float,
) -> Tensor:
    """The loss of a chunk times `share`; writes its gradient to `of_hidden`, and adds it to
    `of_weight`. What it makes in between is gone when it returns."""
    with named("LM head"):
        logits = hidden @ weight.t()
    with named("loss"):
        part, gradient = compiled(of_rows)(logits, targets, share)
    with named("LM head"):
        torch.mm(gradient, weight, out=of_hidden)
        if of_weight.dtype == gradient.dtype:
            of_weight.addmm_(gradient.t(), hidden)
        else:  # the product is rounded to the lower precision before it is added
            of_weight.add_(gradient.t() @ hidden)
    return part


def of_rows(logits: Tensor, targets: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """(sum of the rows' losses, its gradient), both times `share`; the gradient in the logits'
    type, softmax(logits) - onehot(target). logits: (rows, vocab_size); targets: (rows,)."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    log_sum_exp = wide.logsumexp(-1, keepdim=True)
    is_target = torch.arange(logits.shape[-1], device=logits.device) == targets[:, None]
    probability = (wide - log_sum_exp).exp()
    gradient = torch.where(is_target, probability - 1, probability) * share
    of_target = wide.gather(-1, targets[:, None])
    return (log_sum_exp - of_target).sum() * share, gradient.to(logits.dtype)
