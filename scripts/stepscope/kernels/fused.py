"""FlashAttention in Triton as a differentiable function; the GPU and the precision choose the
kernels.

Two operators are registered with PyTorch, so that torch.compile takes each as one step of its
graph, instead of looking into kernels that it cannot read.
"""

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable

from . import masks, operands
from .kernels import backward, forward
from .kernels import unsupported as unsupported
from .shapes import as_4d


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    is_causal: bool,
    window: int | None = None,
    lower_right: bool = False,
) -> Tensor:
    """softmax(Q K^T / sqrt(d_head)) V (Vaswani et al. 2017, equation 1).

    q: (..., heads, queries, d_head); k and v: (..., key heads, keys, d_head), where the number of
    key heads divides that of heads. Returns (..., heads, queries, d_head). With `is_causal`, query
    i sees keys 0 to i; `window` and `lower_right` as in `stepscope.kernels.masks`. Raises
    ValueError, in one line, for what the kernels or the device cannot run.
    """
    return _attend(q, k, v, (is_causal, window, lower_right))


_Masking = tuple[bool, int | None, bool]


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: _Masking) -> Tensor:
    device = q.device.type
    if torch.is_autocast_enabled(device):
        q, k, v = (x.to(torch.get_autocast_dtype(device)) for x in (q, k, v))
    is_compiling = torch.compiler.is_compiling()
    if is_compiling or not (q.ndim == k.ndim == v.ndim == 4):
        operands.check(q, k, v)
        masks.check(*mask)
        if q.ndim != 4:
            return _attend(as_4d(q), as_4d(k), as_4d(v), mask).reshape(q.shape)
    # else a gradient of a tensor given twice is lost (torch 2.11), and all that torch.func.grad
    # wants
    if is_compiling:
        q, k, v = (x.view_as(x) for x in (q, k, v))
    else:  # the kernels read memory as it is
        q, k, v = q.resolve_neg(), k.resolve_neg(), v.resolve_neg()
    wants_gradient = torch.is_grad_enabled() and (
        q.requires_grad or k.requires_grad or v.requires_grad
    )
    # The function raises for forward-mode gradients, at whose levels it is called too.
    if is_compiling or wants_gradient or forward_ad._current_level >= 0:
        return _FlashAttention.apply(q, k, v, mask)
    return forward(q, k, v, *mask)[0]


class _FlashAttention(torch.autograd.Function):
    # An operator takes the host longer to call than a function: only the compiler needs it.
    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, mask: _Masking) -> Tensor:
        ctx.mask = mask
        attend = (
            torch.ops.stepscope.flash_forward.default if torch.compiler.is_compiling() else forward
        )
        output, lse = attend(q, k, v, *mask)
        ctx.save_for_backward(q, k, v, output, lse)
        return output

    @staticmethod
    def backward(ctx, d_output: Tensor) -> tuple:
        q, k, v, output, lse = ctx.saved_tensors
        if torch.compiler.is_compiling():
            operator = torch.ops.stepscope.flash_backward.default
            gradients = operator(q, k, v, output, lse, d_output, *ctx.mask)
        elif torch.is_grad_enabled():
            gradients = _backward_once(ctx, q, k, v, output, lse, d_output, *ctx.mask)
        else:
            gradients = backward(q, k, v, output, lse, d_output, *ctx.mask)
        return *gradients, None


@once_differentiable
def _backward_once(_ctx: object, *tensors_and_mask) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients that raise RuntimeError where they shall be differentiated again."""
    return backward(*tensors_and_mask)


def _empty_results(q: Tensor, *_rest) -> tuple[Tensor, Tensor]:
    return operands.empty_like(q), q.new_empty(q.shape[:-1], dtype=torch.float32)


def _empty_gradients(q: Tensor, k: Tensor, v: Tensor, *_rest) -> tuple[Tensor, Tensor, Tensor]:
    return operands.empty_like(q), operands.empty_like(k), operands.empty_like(v)


_GIVEN = "Tensor q, Tensor k, Tensor v"
_MASK = "bool is_causal, SymInt? window=None, bool lower_right=False"
_FORWARD = f"({_GIVEN}, {_MASK}) -> (Tensor, Tensor)"
_BACKWARD = (
    f"({_GIVEN}, Tensor output, Tensor lse, Tensor d_output, {_MASK}) -> (Tensor, Tensor, Tensor)"
)
for name, signature, implementation, fake in (
    ("flash_forward", _FORWARD, forward, _empty_results),
    ("flash_backward", _BACKWARD, backward, _empty_gradients),
):
    torch.library.define(f"stepscope::{name}", signature)
    torch.library.impl(f"stepscope::{name}", ("cpu", "cuda"), implementation)
    torch.library.register_fake(f"stepscope::{name}", fake)
