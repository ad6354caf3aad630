"""The forward and the backward pass of 4D tensors: which kernels there are for them, worked out
once a shape."""

import math
from functools import lru_cache

import torch
from torch import Tensor
from triton import knobs

from . import (
    hopper_backward,
    hopper_backward_wide,
    hopper_forward,
    masks,
    portable_backward,
    portable_forward,
    tiles,
)
from .hopper_tiles import counter, processors
from .launching import Layout, Plan, layouts_of
from .masks import Mask
from .operands import (
    addressable_rows,
    check,
    contiguous_rows,
    empty_like,
    readable,
)

_INTERPRETED = knobs.runtime.interpret  # decided where kernels are defined: on import
_MOST_KEPT = 1024


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    is_causal: bool,
    window: int | None = None,
    lower_right: bool = False,
) -> tuple[Tensor, Tensor]:
    """Output, shaped and laid out like q, and log-sum-exp, (batch, heads, queries) fp32. Raises
    ValueError, in one line, for what the kernels or the device cannot run."""
    check(q, k, v)
    masks.check(is_causal, window, lower_right)
    reason = unsupported(q.device)
    if reason:
        raise ValueError(reason)
    output, lse = empty_like(q), torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
    if q.numel() == 0 or k.numel() == 0:
        return output.zero_(), lse.fill_(-math.inf)
    by_tma = _by_tma(q)
    tensors = [*(_read(x, by_tma) for x in (q, k, v)), output, lse]
    if not all(x.data_ptr() for x in tensors):
        raise ValueError(
            "fused attention needs tensors that have data, not those of a FakeTensorMode"
        )
    if by_tma:
        tensors.append(counter(q.device))
    mask = masks.mask_of(q.shape[2], k.shape[2], is_causal, window, lower_right)
    forward_plan(layouts_of(tensors), mask, by_tma, _is_hopper(q.device), _precision(q)).run(
        tensors
    )
    return output, lse


def backward(
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
    """Gradients of q, k and v, laid out like them, from that of the output.

    What autograd saved may come back with other strides than it had
    (torch.autograd.graph.save_on_cpu, say): the kernels are chosen by what there is now.
    """
    gradients = empty_like(q), empty_like(k), empty_like(v)
    if q.numel() == 0 or k.numel() == 0:
        for gradient in gradients:
            gradient.zero_()
        return gradients
    by_tma = _by_tma(q)
    q, k, v, d_output = (_read(x, by_tma) for x in (q, k, v, d_output.resolve_neg()))
    output, lse = (readable(x, contiguous_rows) for x in (output, lse.contiguous()))
    tensors = [q, k, v, output, lse, d_output, *gradients]
    mask = masks.mask_of(q.shape[2], k.shape[2], is_causal, window, lower_right)
    backward_plan(layouts_of(tensors), mask, by_tma, _is_hopper(q.device), _precision(q)).run(
        tensors
    )
    return gradients


@lru_cache(maxsize=_MOST_KEPT)
def forward_plan(
    layouts: tuple[Layout, ...], mask: Mask, by_tma: bool, on_hopper: bool, _precision: str
) -> Plan:
    """The launches from q, k, v to output and log-sum-exp, and a counter with those kernels that go
    by TMA."""
    plan = Plan(layouts)
    q = plan.slots[0]
    if by_tma:
        batch, heads, queries, d_head = q.shape
        blocks = tiles.hopper_forward(
            d_head, queries, batch * heads, mask.is_causal, processors(q.device)
        )
        hopper_forward.add_to(plan, mask, blocks)
    else:
        portable_forward.add_to(plan, mask, tiles.portable("forward", q, on_hopper))
    return plan


@lru_cache(maxsize=_MOST_KEPT)
def backward_plan(
    layouts: tuple[Layout, ...], mask: Mask, by_tma: bool, on_hopper: bool, _precision: str
) -> Plan:
    """The launches from q, k, v, output, log-sum-exp and dO to the gradients of q, k and v."""
    plan = Plan(layouts)
    q = plan.slots[0]
    split = tiles.split_backward(q, on_hopper)
    if by_tma:
        module = hopper_backward if q.shape[-1] <= 128 else hopper_backward_wide
        module.add_to(plan, mask, tiles.hopper_backward(q.shape[-1]))
    else:
        both = split or (
            tiles.portable("keys", q, on_hopper),
            tiles.portable("queries", q, on_hopper),
        )
        portable_backward.add_to(plan, mask, both, is_split=bool(split))
    return plan


@lru_cache(maxsize=8)
def unsupported(device: torch.device) -> str | None:
    """Why the device cannot run the kernels, in one line; None if it can."""
    if device.type != "cuda":
        return None if _INTERPRETED else f"fused attention in Triton needs a GPU, not {device.type}"
    capability = torch.cuda.get_device_capability(device)
    if torch.version.hip is None and capability < (8, 0):
        return (
            "fused attention in Triton needs compute capability 8.0 or more, not"
            f" {'.'.join(map(str, capability))}"
        )
    return None


def _by_tma(q: Tensor) -> bool:
    """Whether the kernels for Hopper GPUs run, which multiply 16 bits and move tiles by TMA."""
    return q.dtype != torch.float32 and _is_hopper(q.device)


def _read(x: Tensor, by_tma: bool) -> Tensor:
    return readable(x, addressable_rows if by_tma else contiguous_rows)


def _precision(q: Tensor) -> str:
    """What of the process's settings decides, beside the tensors, on the kernels."""
    return torch.get_float32_matmul_precision() if q.dtype == torch.float32 else ""


@lru_cache(maxsize=8)
def _is_hopper(device: torch.device) -> bool:
    """Whether the device is a GPU of compute capability 9.x."""
    return (
        device.type == "cuda"
        and torch.version.hip is None
        and torch.cuda.get_device_capability(device)[0] == 9
    )
