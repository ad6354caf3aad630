"""What the fused kernels accept, and how it reaches them: 4D, described to the tensor memory
accelerator."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from .launching import Slot

LOG2_E = 1.4426950408889634  # exp(x) is exp2(LOG2_E x), which a GPU has an instruction for
LARGEST_HEAD = 256
ALIGNED = 16  # bytes of addresses: what TMA and the widest loads need
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def check(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise ValueError, in one line, for what the kernels cannot run."""
    if not q.dtype == k.dtype == v.dtype:
        raise ValueError(
            f"q, k and v have to be of one dtype, not {q.dtype}, {k.dtype} and {v.dtype}"
        )
    if q.dtype not in DTYPES:
        raise ValueError(f"fused attention has no {q.dtype}; it has {', '.join(map(str, DTYPES))}")
    if not q.device == k.device == v.device:
        raise ValueError(
            f"q, k and v have to be on one device, not {q.device}, {k.device} and {v.device}"
        )
    check_shapes(q.shape, k.shape, v.shape)


def check_shapes(q: torch.Size, k: torch.Size, v: torch.Size) -> None:
    """The same, of shapes."""
    if (
        k != v
        or len(q) < 2
        or len(q) != len(k)
        or (*q[:-3], q[-1]) != (*k[:-3], k[-1])
        or (q[-3:-2] != k[-3:-2] and (k[-3] == 0 or q[-3] % k[-3]))
    ):
        shapes = ", ".join(str(tuple(x)) for x in (q, k, v))
        raise ValueError(
            "q, k and v have to be (..., heads, length, d_head), alike but for the length of q and"
            f" the number of its heads, a multiple of that of k and v, not {shapes}"
        )
    if reason := wrong_head(q[-1]):
        raise ValueError(reason)


def wrong_head(d_head: int) -> str | None:
    """Why the kernels cannot run heads of so many dimensions, in one line; None if they can."""
    if 0 < d_head <= LARGEST_HEAD and d_head % 8 == 0:
        return None
    return f"fused attention needs d_head a multiple of 8, at most {LARGEST_HEAD}, not {d_head}"


@lru_cache(maxsize=1024)
def contiguous_rows(shape: tuple[int, ...], steps: tuple[int, ...], itemsize: int) -> bool:
    """Whether a pointer can walk the rows of a tensor of this shape and these strides."""
    return steps[-1] == 1


@lru_cache(maxsize=1024)
def addressable_rows(shape: tuple[int, ...], steps: tuple[int, ...], itemsize: int) -> bool:
    """Whether the tensor memory accelerator (TMA) can address a tensor of this shape and these
    strides as it is.

    Its rows are contiguous and its addresses are multiples of 16 bytes (CUDA driver API,
    cuTensorMapEncodeTiled). Heads cut out of a projection are such tensors; a transposed or an
    expanded one is not.
    """
    return steps[-1] == 1 and all(
        size == 1 or (step > 0 and step * itemsize % 16 == 0)
        for step, size in zip(steps[:-1], shape[:-1], strict=True)
    )


def readable(x: Tensor, fits: Callable) -> Tensor:
    """`x`, or a copy of it where it is not aligned or its rows do not fit: one of the two above."""
    if x.data_ptr() % ALIGNED == 0 and fits(x.shape, x.stride(), x.itemsize):
        return x
    return x.clone(memory_format=torch.contiguous_format)


def empty_like(x: Tensor) -> Tensor:
    """A new tensor with the dimensions of `x` in the same order in memory, as far as its rows are
    contiguous then."""
    found = torch.empty_like(x)
    return found if found.stride(-1) == 1 else torch.empty(x.shape, dtype=x.dtype, device=x.device)


def strides(shape: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements, where a dimension of size 1, whose own may be anything, has that of a
    row."""
    rows = zip(steps[:-1], shape[:-1], strict=True)
    return (*(step if size > 1 else shape[-1] for step, size in rows), 1)


def block_of(d_head: int) -> int:
    """Width of a tile: d_head rounded up to a power of two, at least 16, the least that a tensor
    core multiplies.

    What lies beyond d_head is read as zeros and never written.
    """
    return max(16, 1 << (d_head - 1).bit_length())


def rounded_up(number: int, step: int) -> int:
    """The least multiple of `step` that is at least `number`."""
    return -(-number // step) * step


def sizes(q: Slot, k: Slot) -> Sequence[int]:
    """(sequences, heads, queries, keys) of 4D q and k, where sequences = batch * heads, those of
    q."""
    return q.shape[0] * q.shape[1], q.shape[1], q.shape[2], k.shape[2]


def sharing(q: Slot, k: Slot) -> int:
    """How many heads of 4D q share one head of k: sequence s of q has the keys of sequence s //
    sharing."""
    return q.shape[1] // k.shape[1]
