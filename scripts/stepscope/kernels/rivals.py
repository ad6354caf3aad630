"""Kernels of other packages, which are used where they are installed: what they have in common is
the order of their operands' dimensions, and how they place a causal mask."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from stepscope.kernels import masks

LEAST = (9, 0)  # compute capability
TYPES = (torch.float16, torch.bfloat16)


def unsupported(device: torch.device, module: str, package: str) -> str | None:
    """Why a device cannot run the kernels of a package's module, in one line; None if it can."""
    if device.type != "cuda":
        return f"{package} runs on a GPU only"
    if not _is_installed(module):
        return f"{package} is not installed"
    own = torch.cuda.get_device_capability(device)
    needed, has = ("{}.{}".format(*each) for each in (LEAST, own))
    said = f"{package} needs compute capability {needed} or more; this GPU has {has}"
    return said if own < LEAST else None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package that it is in
        return False


def check(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise ValueError for operands that they do not take."""
    if q.dtype not in TYPES:
        raise ValueError(f"it takes float16 and bfloat16, not {q.dtype}")


def attend(
    function: Callable[..., Any],
    operands: tuple[Tensor, Tensor, Tensor],
    is_causal: bool,
    window: int | None,
    lower_right: bool,
) -> Tensor:
    """What `flash_attn_func` makes of operands as stepscope.model.attention has them.

    It takes (batch, length, heads, d_head), and its causal mask ends at the last key. Raises
    ValueError for another mask, and as check() does.
    """
    masks.check(is_causal, window, lower_right)
    check(*operands)
    q, k, v = operands
    if is_causal and not lower_right and q.shape[-2] != k.shape[-2]:
        raise ValueError("its causal mask ends at the last key; give as many queries as keys")
    four = [x.flatten(0, -4) if x.ndim > 4 else x[(None,) * (4 - x.ndim)] for x in operands]
    more = {"window_size": (window - 1, 0)} if window else {}
    found = function(*(x.transpose(1, 2) for x in four), causal=is_causal, **more)
    # Some versions give the logarithms of the sums, too.
    attended = found if isinstance(found, Tensor) else found[0]
    return attended.transpose(1, 2).reshape(*q.shape[:-1], v.shape[-1])
