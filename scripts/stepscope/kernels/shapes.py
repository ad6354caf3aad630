"""Shapes of the tensors that attention is given, as kernels want them."""

from torch import Tensor


def as_4d(x: Tensor) -> Tensor:
    """(..., length, d_head) as (batch, heads, length, d_head), a view wherever its strides allow
    one."""
    if x.ndim == 4:
        return x
    return x.flatten(0, -4) if x.ndim > 4 else x[(None,) * (4 - x.ndim)]
