"""Which kernels attend to which tensors, worked out once for all tensors of the same shapes, strides and types."""

import math
from collections import Counter
from functools import lru_cache

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from triton import knobs

from stepscope.kernels import (
    hopper_backward,
    hopper_backward_wide,
    hopper_forward,
    masks,
    native,
    portable_backward,
    portable_forward,
    split_backward,
    tiles,
)
from stepscope.kernels.hopper_tiles import counter, processors
from stepscope.kernels.launching import Plan
from stepscope.kernels.operands import ALIGNED, addressable_rows, check, contiguous_rows, empty_like, readable

# Triton decides when a kernel is defined: all that were imported above run in its interpreter, on the CPU, or none.
_INTERPRETED = knobs.runtime.interpret
_MOST_KEPT = 1024

known: dict[tuple, "Kernels"] = {}


def kernels(q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None, lower_right: bool) -> "Kernels":
    """The kernels for 4D tensors and a mask. Raises ValueError, in one line, for what they cannot run."""
    key = (
        q.shape,
        q.stride(),
        q.dtype,
        q.get_device(),
        k.shape,
        k.stride(),
        k.dtype,
        k.get_device(),
        v.shape,
        v.stride(),
        v.dtype,
        v.get_device(),
        is_causal,
        window,
        lower_right,
        q.dtype is torch.float32 and torch.get_float32_matmul_precision(),
    )
    found = known.get(key)
    if found is None:
        if len(known) >= _MOST_KEPT:
            known.clear()
        found = known[key] = Kernels(q, k, v, is_causal, window, lower_right)
    return found


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


class Kernels:
    """Forward and backward pass for 4D tensors like those given."""

    def __init__(self, q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None, lower_right: bool):
        check(q, k, v)
        masks.check(is_causal, window, lower_right)
        reason = unsupported(q.device)
        if reason:
            raise ValueError(reason)
        self._given = is_causal, window, lower_right
        self._mask = masks.mask_of(q.shape[2], k.shape[2], is_causal, window, lower_right)
        self._rows = q.shape[:-1]
        self._device = q.device
        self._is_empty = q.numel() == 0 or k.numel() == 0
        hopper = q.dtype != torch.float32 and _is_hopper(q.device)
        self._forward_on_hopper, self._backward_on_hopper = (
            hopper and q.shape[-1] <= tiles.LARGEST_HOPPER_HEAD[direction] for direction in ("forward", "backward")
        )
        self._can_read = addressable_rows if hopper else contiguous_rows
        self._reads_as_they_are = all(self._can_read(x.shape, x.stride(), x.itemsize) for x in (q, k, v))
        self._forward: Plan | None = None
        self._backward: dict[tuple, Plan] = {}
        self._seen: Counter[tuple] = Counter()

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Output and log-sum-exp."""
        addresses = [q.data_ptr(), k.data_ptr(), v.data_ptr()]
        if not self._reads_as_they_are or (addresses[0] | addresses[1] | addresses[2]) % ALIGNED:
            copies = [readable(x, self._can_read) for x in (q, k, v)]
            output, lse = kernels(*copies, *self._given).forward(*copies)
            return empty_like(q).copy_(output), lse
        output, lse = empty_like(q), torch.empty(self._rows, dtype=torch.float32, device=self._device)
        if self._is_empty:
            return output.zero_(), lse.fill_(-math.inf)
        if 0 in addresses:
            raise ValueError("fused attention needs tensors that have data, not those of a FakeTensorMode")
        stream = _stream(self._device)
        tensors = [q, k, v, output, lse]
        addresses += [output.data_ptr(), lse.data_ptr()]
        if self._forward_on_hopper:
            count = counter(self._device, stream)
            tensors.append(count)
            addresses.append(count.data_ptr())
        if self._forward is None:
            plan = Plan(tensors)
            if self._forward_on_hopper:
                batch, heads, queries, d_head = q.shape
                blocks = tiles.hopper_forward(
                    d_head, queries, batch * heads, self._mask.is_causal, processors(self._device)
                )
                hopper_forward.add_to(plan, self._mask, blocks)
            else:
                portable_forward.add_to(plan, self._mask, tiles.forward(q, _is_hopper(q.device)))
            self._forward = plan
        self._forward.run(tensors, addresses, stream)
        if self._comes_again(stream):
            native.remember_forward((q, k, v, *self._given), self._forward, output, addresses, stream)
        return output, lse

    def backward(
        self, q: Tensor, k: Tensor, v: Tensor, output: Tensor, lse: Tensor, d_output: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of q, k and v."""
        addresses = [q.data_ptr(), k.data_ptr(), v.data_ptr(), output.data_ptr(), lse.data_ptr(), d_output.data_ptr()]
        if not self._reads_as_they_are or (addresses[0] | addresses[1] | addresses[2]) % ALIGNED:
            copies = [readable(x, self._can_read) for x in (q, k, v)]
            gradients = kernels(*copies, *self._given).backward(*copies, output, lse, d_output)
            return tuple(empty_like(x).copy_(of) for x, of in zip((q, k, v), gradients, strict=True))
        if (addresses[3] | addresses[4]) % ALIGNED or output.stride(-1) != 1 or not lse.is_contiguous():
            output, lse = (x.clone(memory_format=torch.contiguous_format) for x in (output, lse))
            return self.backward(q, k, v, output, lse, d_output)
        gradients = empty_like(q), empty_like(k), empty_like(v)
        if self._is_empty:
            return tuple(gradient.zero_() for gradient in gradients)
        key = output.stride(), d_output.stride()
        plan = self._backward.get(key)
        if plan is None or addresses[5] % ALIGNED:
            d_output = readable(d_output, self._can_read)
            addresses[5] = d_output.data_ptr()
            key = output.stride(), d_output.stride()
            plan = self._backward.get(key)
        tensors = [q, k, v, output, lse, d_output, *gradients]
        addresses += [gradient.data_ptr() for gradient in gradients]
        if plan is None:
            plan = Plan(tensors)
            on_hopper = _is_hopper(self._device)
            split = tiles.split_backward(q, on_hopper)
            if self._backward_on_hopper:
                module = hopper_backward if q.shape[-1] <= 128 else hopper_backward_wide
                module.add_to(plan, self._mask, tiles.hopper_backward(q.shape[-1]))
            elif split:
                split_backward.add_to(plan, self._mask, *split)
            else:
                choose = tiles.backward_keys, tiles.backward_queries
                portable_backward.add_to(plan, self._mask, *(of(q, on_hopper) for of in choose))
            self._backward[key] = plan
        stream = _stream(self._device)
        plan.run(tensors, addresses, stream)
        if self._comes_again(stream, *key):
            native.remember_backward((q, k, v, *self._given), plan, output, d_output, gradients)
        return gradients

    def _comes_again(self, *case: object) -> bool:
        """Whether a case, the first of which is a stream, came for the second time, on a GPU, and not in a graph."""
        if self._device.type != "cuda" or self._seen[case] > 1 or torch.cuda.is_current_stream_capturing():
            return False
        self._seen[case] += 1
        return self._seen[case] == 2


def gradients(
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
    """Gradients of q, k and v, all 4D, from that of the output.

    What autograd saved may come back with other strides than it had (torch.autograd.graph.save_on_cpu, say): the
    kernels are chosen by what there is now.
    """
    found = kernels(q, k, v, is_causal, window, lower_right)
    return found.backward(q, k, v, output, lse, d_output.resolve_neg())


def gradients_once(*tensors_and_mask) -> tuple[Tensor, Tensor, Tensor]:
    """The same, for autograd: it raises RuntimeError where they shall be differentiated again."""
    return _once(None, *tensors_and_mask) if torch.is_grad_enabled() else gradients(*tensors_and_mask)


@once_differentiable
def _once(_ctx: None, *tensors_and_mask) -> tuple[Tensor, Tensor, Tensor]:
    return gradients(*tensors_and_mask)


@lru_cache(maxsize=8)
def _is_hopper(device: torch.device) -> bool:
    """Whether the device is a GPU of compute capability 9.x."""
    return device.type == "cuda" and torch.version.hip is None and torch.cuda.get_device_capability(device)[0] == 9


def _stream(device: torch.device) -> int:
    """Handle of the device's current stream; 0 where there is none."""
    return torch._C._cuda_getCurrentRawStream(device.index) if device.type == "cuda" else 0
