"""What the kernels for Hopper GPUs share: tensor descriptors, barriers, and the number of multiprocessors."""

from functools import lru_cache

import torch
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from stepscope.attention.launching import Described
from stepscope.attention.operands import strides

_DTYPES = {torch.float32: gl.float32, torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}


def described(x: Tensor, rows: int, columns: int) -> Described:
    """Descriptor with which the tensor memory accelerator moves tiles of (rows, columns) of `x`, 2D to 4D.

    What lies beyond the tensor is read as zeros and not written.
    """
    tile = (1,) * (x.ndim - 2) + (rows, columns)
    return Described(x, x.shape, strides(x), tile, _layout(tile, x.dtype))


@lru_cache(maxsize=64)
def _layout(tile: tuple[int, ...], dtype: torch.dtype) -> gl.NVMMASharedLayout:
    return gl.NVMMASharedLayout.get_default_for(list(tile), _DTYPES[dtype])


@lru_cache(maxsize=8)
def processors(device: torch.device) -> int:
    """Number of the GPU's multiprocessors."""
    return torch.cuda.get_device_properties(device).multi_processor_count


@gluon.jit
def init_barriers(number: gl.constexpr, arrivals: gl.constexpr):
    """`number` barriers in shared memory, each passed when `arrivals` have arrived."""
    barriers = gl.allocate_shared_memory(gl.int64, [number, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(number):
        mbarrier.init(barriers.index(i), arrivals)
    return barriers
