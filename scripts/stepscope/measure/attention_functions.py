"""The functions that the attention study times, made from the model's attention modules."""

import functools
import re
import shutil
from collections.abc import Callable

import torch
from torch import Tensor

from stepscope.measure.attention_names import IMPLEMENTATIONS
from stepscope.model.chosen import load


class Unsupported(Exception):
    """What this machine, or the implementation, cannot do; the message is one line."""


def function(spec: dict) -> Callable[[Tensor, Tensor, Tensor, bool], Tensor]:
    """The spec's implementation as a function of (Q, K, V, is_causal).

    Q, K, V: (batch, length, d_head) or (batch, heads, length, d_head). It raises Unsupported for what cannot be done.
    """
    module, how = IMPLEMENTATIONS[spec["implementation"]]
    if module in ("flex", "triton") and spec["device"] == "cpu":
        raise Unsupported(f"{spec['implementation']} trains on a GPU only")
    attention = load("attention", module).attention
    if how == "under torch.compile":
        return _compiled(attention, spec["device"])
    if module == "naive":
        return attention
    if module == "sdpa":
        return functools.partial(_with_backend, attention, how)
    return functools.partial(_with_heads, attention)


def _compiled(attention: Callable, device: str) -> Callable:
    """The function under torch.compile as a user gets it: for the first length as it is, for the next for any."""
    if device == "cpu" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        raise Unsupported("torch.compile needs a C++ compiler on a CPU; install g++")
    return torch.compile(attention)


def _with_backend(attention: Callable, backend: str, q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
    """SDPA with one backend and no other. It runs fused on four dimensions only: without heads it is given one."""
    kernel = getattr(torch.nn.attention.SDPBackend, backend, None)
    if kernel is None:
        raise Unsupported(f"this torch has no SDPA backend {backend}")
    with torch.nn.attention.sdpa_kernel(kernel):
        return _with_heads(attention, q, k, v, is_causal)


def _with_heads(attention: Callable, q: Tensor, k: Tensor, v: Tensor, is_causal: bool) -> Tensor:
    try:
        if q.dim() == 4:
            return attention(q, k, v, is_causal)
        return attention(*(tensor.unsqueeze(1) for tensor in (q, k, v)), is_causal).squeeze(1)
    except (NotImplementedError, ValueError) as error:
        raise Unsupported(_first_line(error)) from None
    except RuntimeError as error:
        if not re.search("No (available kernel|viable backend)", str(error)):
            raise
        raise Unsupported("SDPA has no such kernel for these inputs on this machine") from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
