"""Cross-entropy with its gradient written out."""

import torch
from torch import Tensor

from stepscope.model.about import Loss
from stepscope.model.ranges import named
from stepscope.model.transformer import TransformerLM

ABOUT = Loss(label="own cross-entropy", keeps="logits")


def loss(model: TransformerLM, tokens: Tensor, targets: Tensor) -> Tensor:
    """See the package."""
    logits = model(tokens)
    with named("loss"):
        return cross_entropy(logits, targets)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean negative log-likelihood, in nats, over all positions.

    logits: (..., vocab_size), any float dtype. targets: (...), int64, each in [0, vocab_size).
    Returns a scalar in at least fp32. Its gradient has the dtype of `logits`.
    """
    return _CrossEntropy.apply(logits, targets)


class _CrossEntropy(torch.autograd.Function):
    """-log softmax(logits)[target] = log-sum-exp(logits) - logits[target], with its gradient
    written out.

    The gradient is softmax(logits) - onehot(target) (Goodfellow et al., Deep Learning, 2016,
    section 6.2.2). Written out, nothing of size vocab_size is kept between forward and backward
    except the logits themselves; autograd would keep the exponentials and add up two more gradients
    of that size.
    """

    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor) -> Tensor:
        maximum = logits.amax(-1, keepdim=True).to(torch.promote_types(logits.dtype, torch.float32))
        log_sum_exp = (logits - maximum).exp_().sum(-1, keepdim=True).log() + maximum
        target_logits = logits.gather(-1, targets.unsqueeze(-1))
        ctx.save_for_backward(logits, targets, log_sum_exp)
        return (log_sum_exp - target_logits).mean()

    @staticmethod
    def backward(ctx, loss_gradient: Tensor) -> tuple[Tensor, None]:
        logits, targets, log_sum_exp = ctx.saved_tensors
        gradient = (logits - log_sum_exp).exp_()
        target_index = targets.unsqueeze(-1)
        gradient.scatter_add_(-1, target_index, gradient.new_full(target_index.shape, -1.0))
        gradient.mul_(loss_gradient / targets.numel())
        return gradient.to(logits.dtype), None
