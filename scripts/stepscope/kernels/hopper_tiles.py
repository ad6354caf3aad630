"""What the kernels for Hopper GPUs share: tensor descriptors, barriers, and the number of
multiprocessors."""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language import constexpr
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from .launching import Described, Slot
from .operands import strides

# Rows and columns of the part of a tile that one warpgroup computes, or of which the rest is
# narrower.
PART = constexpr(64)
_DTYPES = {torch.float32: gl.float32, torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}


def described(x: Slot, rows: int, columns: int) -> Described:
    """Descriptor with which the tensor memory accelerator moves tiles of (rows, columns) of `x`, 2D
    to 4D.

    What lies beyond the tensor is read as zeros and not written.
    """
    tile = [1] * (len(x.shape) - 2) + [rows, columns]
    layout = gl.NVMMASharedLayout.get_default_for(tile, _DTYPES[x.dtype])
    steps = list(strides(x.shape, x.strides))

    @lru_cache(maxsize=1024)  # memory is used again in every step
    def at(address: int) -> TensorDescriptor:
        return TensorDescriptor(_Memory(address, x.dtype), list(x.shape), steps, tile, layout)

    return Described(x.number, at)


class _Memory(NamedTuple):
    """What a descriptor asks of a tensor."""

    address: int
    dtype: torch.dtype

    def data_ptr(self) -> int:
        return self.address


def rest_of(d_head: int) -> int:
    """Columns beyond 64 that are multiplied, where these are fewer than a tile's: a d_head of 80 is
    64 + 16, of 96 is 64 + 32. 0 where a tile is multiplied as a whole: instructions are as wide as
    tiles, and tiles a power of two."""
    if not 64 < d_head <= 96:
        return 0
    return 16 if d_head <= 80 else 32


@lru_cache(maxsize=8)
def processors(device: torch.device) -> int:
    """Number of the GPU's multiprocessors."""
    return torch.cuda.get_device_properties(device).multi_processor_count


def counter(device: torch.device) -> Tensor:
    """One int32 of value 0, which the kernel that counts with it leaves at 0 again; one for each
    stream, on which kernels run one after the other, here for the device's current one. What is
    captured in a graph may run beside others: it gets one of its own."""
    if torch.cuda.is_current_stream_capturing():
        return torch.zeros(1, dtype=torch.int32, device=device)
    stream = torch.cuda.current_stream(device).cuda_stream
    found = _counters.get((device, stream))
    if found is None:
        found = _counters[device, stream] = _lasting_zero(device)
    return found


def _lasting_zero(device: torch.device) -> Tensor:
    """One int32 of value 0 for the current stream. A thread that prepares a graph allocates in the
    graph's own memory, which is used again for the graph (`torch.compile(mode="reduce-overhead")`):
    this is made in another thread."""
    stream = torch.cuda.Stream(device)

    def zero() -> Tensor:
        with torch.cuda.stream(stream):
            return torch.zeros(1, dtype=torch.int32, device=device)

    with ThreadPoolExecutor(1) as other_thread:
        made = other_thread.submit(zero).result()
    torch.cuda.current_stream(device).wait_stream(stream)
    return made


_counters: dict[tuple[torch.device, int], Tensor] = {}


@gluon.constexpr_function
def accumulator(columns):
    """Layout of the 64 rows of so many columns that a warpgroup's matrix instructions add up."""
    return gl.NVMMADistributedLayout([3, 0], [4, 1], [16, columns, 16])


@gluon.jit
def buffers_of(x, number: constexpr):
    """Shared memory for so many of the tiles that a descriptor moves."""
    shape: constexpr = _so_many(number, x.block_shape)
    return gl.allocate_shared_memory(x.dtype, shape, x.layout)


@gluon.constexpr_function
def _so_many(number, shape):
    return [number, *shape]


@gluon.jit
def tile_at(buffers, slot):
    """The tile in one of several buffers, by rows and columns."""
    buffer = buffers.index(slot)
    shape: constexpr = _rows_and_columns(buffer.shape)
    return buffer.reshape(shape)


@gluon.constexpr_function
def _rows_and_columns(shape):
    return list(shape[-2:])


@gluon.jit
def init_barriers(number: constexpr, arrivals: constexpr):
    """`number` barriers in shared memory, each passed when `arrivals` have arrived."""
    barriers = gl.allocate_shared_memory(gl.int64, [number, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(number):
        mbarrier.init(barriers.index(i), arrivals)
    return barriers


@gluon.jit
def added(sums, rest, operand, right, REST: constexpr):
    """(sums, rest) and the product of an operand in registers and `right`, started, of those
    columns that are not all padding (see `rest_of`). Without a rest `rest` is anything."""
    if REST:
        sums = warpgroup_mma(operand, right.slice(0, PART, 1), sums, is_async=True)
        same = gl.convert_layout(operand, gl.DotOperandLayout(0, rest.type.layout, 2))
        return sums, warpgroup_mma(same, right.slice(PART, REST, 1), rest, is_async=True)
    else:
        return warpgroup_mma(operand, right, sums, is_async=True), rest


@gluon.jit
def finished(sums, rest, REST: constexpr):
    """Both, once all products that were started have ended."""
    if REST:
        return warpgroup_mma_wait(0, deps=(sums, rest))
    else:
        return warpgroup_mma_wait(0, deps=(sums,)), rest


@gluon.jit
def multiplied(left, right, start, add: constexpr, REST: constexpr):
    """The product left right^T, started, of those columns that are not all padding (see `rest_of`);
    added to `start` or instead of it."""
    if REST:
        part = right.slice(0, PART, 1).permute([1, 0])
        product = warpgroup_mma(left.slice(0, PART, 1), part, start, use_acc=add, is_async=True)
        part = right.slice(PART, REST, 1).permute([1, 0])
        return warpgroup_mma(left.slice(PART, REST, 1), part, product, is_async=True)
    return warpgroup_mma(left, right.permute([1, 0]), start, use_acc=add, is_async=True)
