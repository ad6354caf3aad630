"""Numerically stable softmax."""

import torch
from torch import Tensor


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Softmax of `x` along `dim`; same shape and dtype as `x`, at least fp32 inside.

    softmax(x) = softmax(x - max(x)) keeps every exponent at or below zero (Goodfellow et al., Deep
    Learning, 2016, section 4.1). A row of which every entry is -inf gives NaN, as in PyTorch.
    """
    # The shift changes no value, so it needs no gradient; detached, the backward pass through max()
    # is saved.
    maximum = x.detach().amax(dim, keepdim=True)
    # bf16 minus fp32 is computed and returned in fp32 by one kernel: only the small `maximum` is
    # ever cast.
    maximum = maximum.to(torch.promote_types(x.dtype, torch.float32))
    exponentials = (x - maximum).exp_()
    # A product with the small reciprocal has a far cheaper gradient than a division.
    normaliser = exponentials.sum(dim, keepdim=True).reciprocal()
    return (exponentials * normaliser).to(x.dtype)
