"""FlashAttention in Triton as a differentiable function; the GPU and the precision choose the kernels.

Two operators are registered with PyTorch, so that torch.compile takes each as one step of its graph, instead of looking
into kernels that it cannot read.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from triton import knobs

from stepscope.attention import (
    hopper_backward,
    hopper_backward_wide,
    hopper_forward,
    masks,
    portable_backward,
    portable_forward,
    tiles,
)
from stepscope.attention.operands import addressable, as_4d, check, empty_like, with_contiguous_rows

# Triton decides when a kernel is defined: all that were imported above run in its interpreter, on the CPU, or none.
_INTERPRETED = knobs.runtime.interpret


def attention(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None, lower_right: bool = False
) -> Tensor:
    """softmax(Q K^T / sqrt(d_head)) V (Vaswani et al. 2017, equation 1).

    q: (..., heads, queries, d_head); k and v: (..., key heads, keys, d_head), where the number of key heads divides
    that of heads. Returns (..., heads, queries, d_head). With `is_causal`, query i sees keys 0 to i; `window` and
    `lower_right` as in `stepscope.attention.masks`. Raises ValueError, in one line, for what the kernels or the device
    cannot run.
    """
    return attention_and_lse(q, k, v, is_causal, window, lower_right)[0]


def attention_and_lse(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None, lower_right: bool = False
) -> tuple[Tensor, Tensor]:
    """The same, and log(sum(exp(scores))) of every query, natural logarithm: (..., queries) fp32, no gradient.

    A query that sees no key has the output 0 and the log-sum-exp -inf.
    """
    device = q.device.type
    if torch.is_autocast_enabled(device):
        q, k, v = (x.to(torch.get_autocast_dtype(device)) for x in (q, k, v))
    check(q, k, v)
    masks.check(is_causal, window, lower_right)
    output, lse = _FlashAttention.apply(as_4d(q), as_4d(k), as_4d(v), is_causal, window, lower_right)
    return (output, lse) if q.ndim == 4 else (output.reshape(q.shape), lse.reshape(q.shape[:-1]))


@lru_cache(maxsize=8)
def unsupported(device: torch.device) -> str | None:
    """Why the device cannot run the kernels, in one line; None if it can."""
    if _INTERPRETED:
        return None
    if device.type != "cuda":
        return f"fused attention in Triton needs a GPU, not {device.type}"
    capability = torch.cuda.get_device_capability(device)
    if torch.version.hip is None and capability < (8, 0):
        return f"fused attention in Triton needs compute capability 8.0 or more, not {'.'.join(map(str, capability))}"
    return None


class _FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx, q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None, lower_right: bool
    ) -> tuple[Tensor, Tensor]:
        # An operator takes the host longer to call than a function: only the compiler needs it.
        forward = torch.ops.stepscope.flash_forward.default if torch.compiler.is_compiling() else _forward
        output, lse = forward(q, k, v, is_causal, window, lower_right)
        ctx.save_for_backward(q, k, v, output, lse)
        ctx.mask = is_causal, window, lower_right
        ctx.mark_non_differentiable(lse)
        return output, lse

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output: Tensor, _d_lse: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        backward = torch.ops.stepscope.flash_backward.default if torch.compiler.is_compiling() else _backward
        return *backward(*ctx.saved_tensors, d_output, *ctx.mask), None, None, None


def _empty_results(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None, lower_right: bool = False
) -> tuple[Tensor, Tensor]:
    return empty_like(q), torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)


def _forward(
    q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None, lower_right: bool = False
) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp of 4D tensors."""
    reason = unsupported(q.device)
    if reason:
        raise ValueError(reason)
    output, lse = _empty_results(q, k, v, is_causal)
    if output.numel() == 0 or k.numel() == 0:
        return output.zero_(), lse.fill_(-math.inf)
    mask = masks.mask_of(q.shape[2], k.shape[2], is_causal, window, lower_right)
    if _is_for_hopper(q, "forward"):
        q, k, v = (addressable(x) for x in (q, k, v))
        hopper_forward.forward(q, k, v, output, lse, mask, tiles.hopper_forward(q.shape[-1], q.shape[-2]))
    else:
        q, k, v = (with_contiguous_rows(x) for x in (q, k, v))
        portable_forward.forward(q, k, v, output, lse, mask, tiles.forward(q, _is_hopper(q.device)))
    return output, lse


def _empty_gradients(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    output: Tensor,
    lse: Tensor,
    d_output: Tensor,
    is_causal: bool,
    window: int | None = None,
    lower_right: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    return empty_like(q), empty_like(k), empty_like(v)


def _backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    output: Tensor,
    lse: Tensor,
    d_output: Tensor,
    is_causal: bool,
    window: int | None = None,
    lower_right: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v, all 4D."""
    gradients = _empty_gradients(q, k, v, output, lse, d_output, is_causal)
    if output.numel() == 0 or k.numel() == 0:
        return tuple(gradient.zero_() for gradient in gradients)
    mask = masks.mask_of(q.shape[2], k.shape[2], is_causal, window, lower_right)
    if _is_for_hopper(q, "backward"):
        q, k, v, d_output = (addressable(x) for x in (q, k, v, d_output))
        kernels = hopper_backward if q.shape[-1] <= 128 else hopper_backward_wide
        kernels.backward(q, k, v, output, lse, d_output, *gradients, mask, tiles.hopper_backward(q.shape[-1]))
    else:
        q, k, v, d_output = (with_contiguous_rows(x) for x in (q, k, v, d_output))
        portable_backward.backward(
            q,
            k,
            v,
            output,
            lse,
            d_output,
            *gradients,
            mask,
            *(choose(q, _is_hopper(q.device)) for choose in (tiles.backward_keys, tiles.backward_queries)),
        )
    return gradients


def _is_for_hopper(q: Tensor, direction: str) -> bool:
    """Whether the kernels for Hopper GPUs take tensors like `q`."""
    return q.dtype != torch.float32 and q.shape[-1] <= tiles.LARGEST_HOPPER_HEAD[direction] and _is_hopper(q.device)


@lru_cache(maxsize=8)
def _is_hopper(device: torch.device) -> bool:
    """Whether the device is a GPU of compute capability 9.x."""
    return device.type == "cuda" and torch.version.hip is None and torch.cuda.get_device_capability(device)[0] == 9


_MASK = "bool is_causal, SymInt? window=None, bool lower_right=False"
for name, signature, implementation, fake in (
    ("flash_forward", f"(Tensor q, Tensor k, Tensor v, {_MASK}) -> (Tensor, Tensor)", _forward, _empty_results),
    (
        "flash_backward",
        f"(Tensor q, Tensor k, Tensor v, Tensor output, Tensor lse, Tensor d_output, {_MASK})"
        " -> (Tensor, Tensor, Tensor)",
        _backward,
        _empty_gradients,
    ),
):
    torch.library.define(f"stepscope::{name}", signature)
    torch.library.impl(f"stepscope::{name}", ("cpu", "cuda"), implementation)
    torch.library.register_fake(f"stepscope::{name}", fake)
