"""Sizes of the kernels' tiles: fixed by the shape and the GPU, never tuned while a program runs.

Tuning at run time would cost seconds in every process and could choose other tiles in the next one,
whose sums would round differently. The tables hold what `benchmarks/attention_kernels.py --tune`
measured.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .launching import Kernel, Plan, Slot
from .masks import Mask
from .operands import block_of, sharing

HOPPER_ROWS = 64  # queries of a warpgroup: the height of its matrix instruction


@dataclass(frozen=True)
class Tiles:
    """Rows of Q and of K in a tile, warps of a program, stages of its pipeline of loads, and the
    parts in which fp32 is multiplied where TF32 is not allowed: 3 products of TF32 parts, or 6 of
    bf16 parts, which need less shared memory.
    """

    queries: int
    keys: int
    warps: int
    stages: int = 2
    parts: str = "tf32x3"


@dataclass(frozen=True)
class HopperForward:
    """Width of a tile, warpgroups with 64 queries each, keys of a tile, tiles in flight, registers
    of a thread. So many sequences take turns as have keys and values of `cached` bytes."""

    block: int
    warpgroups: int
    keys: int
    stages: int
    registers: int
    cached: int = 16 * 2**20  # a third of an H100's L2 cache, half of what is near


@dataclass(frozen=True)
class Together:
    """How many sequences of keys take turns: as many as make up `waves` programs for each
    multiprocessor, at least `least`, at most `most`."""

    waves: int
    least: int
    most: int = sys.maxsize

    def of(self, sequences: int, key_tiles: int, multiprocessors: int) -> int:
        """Of so many sequences, which have a program for each tile of their keys."""
        return min(max(self.least, self.waves * multiprocessors // key_tiles), self.most, sequences)


@dataclass(frozen=True)
class HopperBackward:
    """Width of a tile, queries of a tile, tiles in flight, registers of a thread; how many
    sequences take turns where each head has keys of its own, and where several share them."""

    block: int
    queries: int
    stages: int
    registers: int
    alone: Together
    shared: Together


# Bytes of a row of a tile, at least 128 -> tiles that fit into the 99 KiB of shared memory of the
# smallest GPUs (compute capability 8.6) and whose sums fit into the registers.
_TILES = {
    "forward": {
        128: Tiles(128, 64, 4, 3),
        256: Tiles(128, 64, 8),
        512: Tiles(64, 32, 4),
        1024: Tiles(32, 16, 4),
    },
    "keys": {
        128: Tiles(64, 64, 4),
        256: Tiles(32, 64, 4),
        512: Tiles(32, 32, 4),
        1024: Tiles(16, 16, 4),
    },
    "queries": {
        128: Tiles(64, 64, 4),
        256: Tiles(64, 32, 4),
        512: Tiles(32, 32, 4),
        1024: Tiles(16, 16, 4),
    },
}
# What an H200 does better, with its 227 KiB: kernel, precision, bytes of a row. TFLOP/s, causal,
# fp32 with 2,048 tokens, d_head 64 and 128: in tf32 forward 91 and 65, now 101 and 88, backward 67
# and 52, now about 85 and 70; in parts forward 45 and 22, now 50 and 53.
_ON_HOPPER = {
    ("forward", "tf32", 256): Tiles(128, 32, 4),
    ("forward", "tf32", 512): Tiles(128, 64, 8),
    ("keys", "tf32", 256): Tiles(64, 128, 8),
    ("keys", "tf32", 512): Tiles(32, 128, 8),
    ("queries", "tf32", 256): Tiles(128, 32, 8),
    ("queries", "tf32", 512): Tiles(128, 32, 8),
    ("forward", "parts", 256): Tiles(64, 64, 4, parts="bf16x6"),
    ("forward", "parts", 512): Tiles(128, 64, 8, parts="bf16x6"),
}
# Largest d_head -> tiles for keys and for queries of the backward pass in parts that are made once;
# they fit into the 227 KiB of a Hopper GPU. On an H200, TFLOP/s of 32 x 1,024, 32 x 4,096 with
# d_head 64, 16 x 1,024 and 16 x 4,096 with 128 (heads x length, batch 4, causal): 42, 61, 28 and
# 39; parts made in each step: 33, 44, 22 and 27; SDPA's efficient kernel 25, 33, 24 and 35. Sums of
# all tiles in the tensor cores' accumulators would be 16 % faster with d_head 128 and grow wrong
# with the length (3e-5 at 4,096 tokens instead of 5e-7: they are truncated, not rounded).
_SPLIT = {
    64: (Tiles(64, 128, 8), Tiles(128, 64, 8)),
    128: (Tiles(32, 64, 4), Tiles(64, 32, 4)),
}
# fp32 without tensor cores: every product is unrolled into multiply-adds, whose number grows with
# the tile. On an H100 these reach 6 TFLOP/s forward and 4 backward; tiles of other shapes are up to
# a third slower, larger ones as fast.
_SMALL = {
    128: Tiles(32, 32, 8),
    256: Tiles(32, 32, 8),
    512: Tiles(32, 32, 8),
    1024: Tiles(16, 16, 4),
}
_WITHOUT_TENSOR_CORES = {
    "forward": _SMALL,
    "keys": _SMALL,
    "queries": {
        128: Tiles(64, 64, 8),
        256: Tiles(64, 64, 8),
        512: Tiles(32, 64, 8),
        1024: Tiles(16, 16, 4),
    },
}

# TFLOP/s with d_head 64 (causal, bf16, H200): two warpgroups 333 at 1,024 tokens, three 355; at 512
# both 235. Three hide more of the exponentials, which take as long as the products at this d_head;
# blocks of 192 queries waste more of a short sequence. With d_head 128 a third one lacks registers
# (366 of 617 on an H100). Half as many keys in a tile cost 3 to 15 % in both, 2 to 4 stages differ
# by 3 %. Twice as many bytes at a time bring 3 % at 1,024 tokens with three warpgroups and cost 1 %
# with d_head 128; a quarter of them costs 7 %.
_HOPPER_FORWARD = HopperForward(64, 2, 128, 4, 240)
_HOPPER_FORWARD_LONG = HopperForward(64, 3, 128, 3, 160, 32 * 2**20)
_HOPPER_FORWARD_WIDE = HopperForward(128, 2, 128, 2, 240)
_HOPPER_FORWARD_WIDEST = HopperForward(256, 2, 64, 2, 240)
_LONG = 1024
# What a third warpgroup gains where there are many rounds of blocks, without a mask: 12 to 22 % on
# an H200 (d_head 64). With 8 sequences of 4,096 queries, two rounds either way, it costs 25 %.
_THIRD_GAINS = 1.15
# Three stages are as fast or 2 % slower. Tiles of 8,192 elements: larger ones do not fit into the
# registers.
_HOPPER_BACKWARD = HopperBackward(64, 128, 2, 240, Together(4, 16), Together(4, 16))
# 32 heads that share the keys of 8, 4 x 4,096 tokens on an H200: 487 TFLOP/s with 1 wave, 512 with
# 2.
_HOPPER_BACKWARD_WIDE = HopperBackward(128, 64, 2, 240, Together(1, 2), Together(2, 2))
# Its kernel is made for these tiles and stages. The more sequences take turns, the fewer programs
# wait for each other; but the queries that they read have to stay in the L2 cache. 32 sequences of
# 4,096 tokens on an H200, d_head 256: 367 TFLOP/s with 8 together, 375 with 16, 298 with 24; of
# 16,384 tokens: 408 with 8, 313 with 16 (cuDNN 374 and 380). To start the next products before dQ
# is stored lacks registers.
_HOPPER_BACKWARD_WIDEST = HopperBackward(256, 64, 2, 240, Together(8, 8, 32), Together(1, 2))


def input_precision(dtype: torch.dtype, tiles: Tiles) -> str:
    """How a tensor core takes fp32: rounded to TF32 if PyTorch's matrix products may do so, else in
    parts.

    x = high + low (+ lowest), and a product is the sum of those of parts that matter: three of
    TF32, six of bf16. Both have fp32's error or less (Henry et al. 2019). AMD's Triton has neither:
    there fp32 is multiplied without tensor cores.
    """
    kind = _kind(dtype)
    return {"parts": tiles.parts, "ieee": "ieee"}.get(kind, "tf32")


def _kind(dtype: torch.dtype) -> str:
    if dtype != torch.float32:
        return "half"
    if torch.get_float32_matmul_precision() != "highest":
        return "tf32"
    return "parts" if torch.version.hip is None else "ieee"


def launch(
    plan: Plan,
    kernel: Kernel,
    grid: tuple[int, int],
    arguments: Sequence,
    mask: Mask,
    tiles: Tiles,
    **constants: str,
) -> None:
    """Launch a kernel with tiles through pointers. The plan begins with q and k; `constants` are
    those that the kernel has at compile time after those that shapes, mask and tiles decide."""
    q, k = plan.slots[:2]
    of_all = {
        "QUERIES": tiles.queries,
        "KEYS": tiles.keys,
        "D_HEAD": q.shape[-1],
        "BLOCK": block_of(q.shape[-1]),
        "SHARING": sharing(q, k),
        "CAUSAL": mask.is_causal,
        "WINDOWED": mask.window > 0,
    }
    plan.launch(
        kernel,
        grid,
        arguments,
        of_all | constants,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )


def portable(kernel: str, q: Slot, on_hopper: bool) -> Tiles:
    """Tiles of the kernels for any GPU: `forward`, or of the backward pass `keys` and `queries`."""
    width = max(128, block_of(q.shape[-1]) * q.itemsize)
    kind = _kind(q.dtype)
    if kind == "ieee":
        return _WITHOUT_TENSOR_CORES[kernel][width]
    return (on_hopper and _ON_HOPPER.get((kernel, kind, width))) or _TILES[kernel][width]


def split_backward(q: Slot, on_hopper: bool) -> tuple[Tiles, Tiles] | None:
    """Tiles of the backward pass for K and V and for Q where fp32 is taken apart once, before it,
    or None."""
    if not on_hopper or _kind(q.dtype) != "parts":
        return None
    return next((found for largest, found in _SPLIT.items() if q.shape[-1] <= largest), None)


def hopper_forward(
    d_head: int, queries: int, sequences: int, is_causal: bool, multiprocessors: int
) -> HopperForward:
    """Tiles of the forward pass on a Hopper GPU.

    Without a causal mask all blocks of queries take equally long, and each multiprocessor attends
    to one after the other: the last round is as long as a full one, so that fewer queries in a
    block may end sooner.
    """
    if d_head > 64:
        return _HOPPER_FORWARD_WIDE if d_head <= 128 else _HOPPER_FORWARD_WIDEST
    if queries < _LONG:
        return _HOPPER_FORWARD

    def rounds(tiles: HopperForward) -> int:
        blocks = -(-queries // (HOPPER_ROWS * tiles.warpgroups)) * sequences
        return -(-blocks // multiprocessors) * tiles.warpgroups

    if not is_causal and rounds(_HOPPER_FORWARD) * _THIRD_GAINS < rounds(_HOPPER_FORWARD_LONG):
        return _HOPPER_FORWARD
    return _HOPPER_FORWARD_LONG


def hopper_backward(d_head: int) -> HopperBackward:
    """Tiles of the backward pass on a Hopper GPU."""
    if d_head > 128:
        return _HOPPER_BACKWARD_WIDEST
    return _HOPPER_BACKWARD if d_head <= 64 else _HOPPER_BACKWARD_WIDE
