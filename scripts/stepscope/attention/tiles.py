"""Sizes of the kernels' tiles: fixed by the shape and the GPU, never tuned while a program runs.

Tuning at run time would cost seconds in every process and could choose other tiles in the next one, whose sums would
round differently. The tables hold what `benchmarks/attention_kernels.py --tune` measured.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from stepscope.attention.operands import block_of

LARGEST_HOPPER_HEAD = 128


@dataclass(frozen=True)
class Tiles:
    """Rows of Q and of K in a tile, warps of a program, stages of its pipeline of loads."""

    queries: int
    keys: int
    warps: int
    stages: int


@dataclass(frozen=True)
class HopperForward:
    """Width of a tile, warpgroups with 64 queries each, keys of a tile, tiles in flight, registers of a thread."""

    block: int
    warpgroups: int
    keys: int
    stages: int
    registers: int


@dataclass(frozen=True)
class HopperBackward:
    """Width of a tile, queries of a tile, tiles in flight, registers of a thread."""

    block: int
    queries: int
    stages: int
    registers: int


# Bytes of a row of a tile, at least 128 -> tiles that fit into the 99 KiB of shared memory of the smallest GPUs
# (compute capability 8.6) and whose sums fit into the registers.
_FORWARD = {
    128: Tiles(128, 64, 4, 3),
    256: Tiles(128, 64, 8, 2),
    512: Tiles(64, 32, 4, 2),
    1024: Tiles(32, 16, 4, 2),
}
_BACKWARD_KEYS = {
    128: Tiles(64, 64, 4, 2),
    256: Tiles(32, 64, 4, 2),
    512: Tiles(32, 32, 4, 2),
    1024: Tiles(16, 16, 4, 2),
}
_BACKWARD_QUERIES = {
    128: Tiles(64, 64, 4, 2),
    256: Tiles(64, 32, 4, 2),
    512: Tiles(32, 32, 4, 2),
    1024: Tiles(16, 16, 4, 2),
}
# fp32 without tensor cores: every product is unrolled into multiply-adds, whose number grows with the tile. On an H100
# these reach 6 TFLOP/s forward and 4 backward; tiles of other shapes are up to a third slower, larger ones as fast.
_WITHOUT_TENSOR_CORES = {
    128: Tiles(32, 32, 8, 2),
    256: Tiles(32, 32, 8, 2),
    512: Tiles(32, 32, 8, 2),
    1024: Tiles(16, 16, 4, 2),
}
_BACKWARD_QUERIES_WITHOUT_TENSOR_CORES = {
    128: Tiles(64, 64, 8, 2),
    256: Tiles(64, 64, 8, 2),
    512: Tiles(32, 64, 8, 2),
    1024: Tiles(16, 16, 4, 2),
}

# On an H100, TFLOP/s of 64 x 1,024, 64 x 4,096 and 64 x 16,384 (d_head x length, causal, bf16): two warpgroups 311, 431
# and 470, three 270, 427 and 498. Three hide more of the exponentials, which take as long as the products at this
# d_head; blocks of 192 queries waste more of a short sequence. With d_head 128 a third one lacks registers (366 of 617
# TFLOP/s at 16,384, with all else as it was then). Half as many keys in a tile cost 3 to 15 % in both, 2 to 4 stages
# differ by 3 %.
_HOPPER_FORWARD = HopperForward(64, 2, 128, 4, 240)
_HOPPER_FORWARD_LONG = HopperForward(64, 3, 128, 3, 160)
_HOPPER_FORWARD_WIDE = HopperForward(128, 2, 128, 2, 240)
_LONG = 8192
# Three stages are as fast or 2 % slower. Tiles of 8,192 elements: larger ones do not fit into the registers.
_HOPPER_BACKWARD = HopperBackward(64, 128, 2, 240)
_HOPPER_BACKWARD_WIDE = HopperBackward(128, 64, 2, 240)


def input_precision(dtype: torch.dtype) -> str:
    """How a tensor core takes fp32: rounded to TF32 if PyTorch's matrix products may do so, else not at all."""
    return "ieee" if dtype == torch.float32 and torch.get_float32_matmul_precision() == "highest" else "tf32"


def forward(q: Tensor) -> Tiles:
    """Tiles of the forward pass."""
    return _for(q, _FORWARD, _WITHOUT_TENSOR_CORES)


def backward_keys(q: Tensor) -> Tiles:
    """Tiles of the backward pass for K and V."""
    return _for(q, _BACKWARD_KEYS, _WITHOUT_TENSOR_CORES)


def backward_queries(q: Tensor) -> Tiles:
    """Tiles of the backward pass for Q."""
    return _for(q, _BACKWARD_QUERIES, _BACKWARD_QUERIES_WITHOUT_TENSOR_CORES)


def _for(q: Tensor, table: dict[int, Tiles], without_tensor_cores: dict[int, Tiles]) -> Tiles:
    """The entry of one of the tables for rows of `q`."""
    exact = q.dtype == torch.float32 and input_precision(q.dtype) == "ieee"
    return (without_tensor_cores if exact else table)[max(128, block_of(q.shape[-1]) * q.itemsize)]


def hopper_forward(d_head: int, queries: int) -> HopperForward:
    """Tiles of the forward pass on a Hopper GPU."""
    if d_head > 64:
        return _HOPPER_FORWARD_WIDE
    return _HOPPER_FORWARD_LONG if queries >= _LONG else _HOPPER_FORWARD


def hopper_backward(d_head: int) -> HopperBackward:
    """Tiles of the backward pass on a Hopper GPU."""
    return _HOPPER_BACKWARD if d_head <= 64 else _HOPPER_BACKWARD_WIDE
