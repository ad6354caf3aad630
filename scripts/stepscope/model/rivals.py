"""Kernels of other packages, which are used where they are installed: what they have in common is
the order of their operands' dimensions, and how they place a causal mask."""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import torch
from torch import Tensor

from stepscope.kernels import masks
from stepscope.kernels.shapes import as_4d

from .ranges import named

LEAST = (9, 0)  # compute capability
TYPES = (torch.float16, torch.bfloat16)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package that it is in
        return False


@dataclass(frozen=True)
class Rival:
    """The kernels of a package's module, as an implementation of stepscope.model.attention."""

    module: str
    package: str

    def unsupported(self, device: torch.device, d_head: int | None) -> str | None:
        """Why a device cannot run them, in one line; None if it can."""
        if device.type != "cuda":
            return f"{self.package} runs on a GPU only"
        if not _is_installed(self.module):
            return f"{self.package} is not installed"
        own = torch.cuda.get_device_capability(device)
        if own >= LEAST:
            return None
        return (
            f"{self.package} needs compute capability {LEAST[0]}.{LEAST[1]} or more; this GPU has"
            f" {own[0]}.{own[1]}"
        )

    def check(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Raise ValueError for operands that they do not take."""
        if q.dtype not in TYPES:
            raise ValueError(f"it takes float16 and bfloat16, not {q.dtype}")

    def attention(
        self, q: Tensor, k: Tensor, v: Tensor, is_causal: bool, window: int | None = None
    ) -> Tensor:
        """What its `flash_attn_func` makes of them.

        That takes (batch, length, heads, d_head), and its causal mask ends at the last key. Raises
        ValueError for another mask, and as check() does.
        """
        masks.check(is_causal, window)
        self.check(q, k, v)
        if is_causal and q.shape[-2] != k.shape[-2]:
            raise ValueError("its causal mask ends at the last key; give as many queries as keys")
        more = {"window_size": (window - 1, 0)} if window else {}
        with named("fused attention"):
            attend = import_module(self.module).flash_attn_func
            given = [as_4d(x).transpose(1, 2) for x in (q, k, v)]
            found = attend(*given, causal=is_causal, **more)
        # Some versions give the logarithms of the sums, too.
        attended = found if isinstance(found, Tensor) else found[0]
        return attended.transpose(1, 2).reshape(*q.shape[:-1], v.shape[-1])
