"""Launching kernels with little time of the host: what follows from shapes is worked out once, then only addresses
change. Triton's own search for the compiled kernel, and its description of a tensor to the tensor memory accelerator
(TMA), each take the host longer than the launch."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

_MOST_KEPT = 4096  # encoded descriptors of an argument; a training step needs one for each layer
_ALIGNED = 512  # bytes, as PyTorch's allocator aligns what it gives


@dataclass(frozen=True, slots=True)
class Slot:
    """What is known of a tensor before it exists: all but its address."""

    number: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    def stride(self, dimension: int | None = None) -> tuple[int, ...] | int:
        """As a tensor's."""
        return self.strides if dimension is None else self.strides[dimension]

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def size(self) -> int:
        """Bytes of one without gaps."""
        return math.prod(self.shape) * self.itemsize


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor that a kernel reaches through TMA, tile by tile: what Triton's launcher reads of a TensorDescriptor."""

    base: object
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    layout: NVMMASharedLayout
    padding: str = "zero"
    round_f32_to_tf32: bool = False


class Plan:
    """Kernels, one after the other, for tensors like those given: `slots` stand for them, in their order.

    A module of kernels adds launches to it, with slots in place of tensors; `run` makes them all.
    """

    def __init__(self, tensors: Sequence[Tensor]):
        self.device = tensors[0].device
        self.slots = [Slot(i, x.shape, x.stride(), x.dtype) for i, x in enumerate(tensors)]
        self._launches: list[_Launch] = []
        self._scratch: list[tuple[Slot, int]] = []
        self._scratch_bytes = 0

    def scratch(self, *shape: int, dtype: torch.dtype) -> Slot:
        """Memory of this shape, contiguous, for as long as the plan runs."""
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        slot = Slot(len(self.slots), shape, strides, dtype)
        self.slots.append(slot)
        self._scratch.append((slot, self._scratch_bytes))
        self._scratch_bytes += -(-slot.size() // _ALIGNED) * _ALIGNED
        return slot

    def launch(
        self, kernel: Callable, grid: tuple[int, ...], arguments: Sequence, constants: dict, **options: int
    ) -> None:
        """Launch `kernel` on `grid` with its arguments, in this order: tensors by TMA, other tensors, strides and
        numbers; followed by its compile-time constants in their order. `options` are the compiler's."""
        self._launches.append(_Launch(kernel, (*grid, 1, 1)[:3], arguments, constants, options))

    def run(self, *tensors: Tensor) -> None:
        """Launch all kernels. The tensors are like those for which the plan was made, each aligned to 16 bytes."""
        addresses = [x.data_ptr() for x in tensors]
        if self._scratch:
            memory = torch.empty(self._scratch_bytes, dtype=torch.uint8, device=self.device)
            begin = memory.data_ptr()
            addresses += [begin + offset for _, offset in self._scratch]
        else:
            memory = None
        stream = 0 if self.device.index is None else torch._C._cuda_getCurrentRawStream(self.device.index)
        for launch in self._launches:
            if launch.is_ready:
                launch.again(addresses, stream)
            else:
                views = [_view(memory, slot, offset) for slot, offset in self._scratch]
                launch.first([*tensors, *views])


class _Launch:
    """One kernel of a plan. The first launch is Triton's own, which compiles if need be.

    Triton encodes descriptors within its launcher; where that is not as expected here, each launch is Triton's own.
    """

    def __init__(self, kernel: Callable, grid: tuple[int, int, int], arguments: Sequence, constants: dict, options):
        self._kernel, self._grid, self._constants, self._options = kernel, grid, constants, options
        self._described = [x for x in arguments if isinstance(x, Described)]
        self._pointers = [x for x in arguments if isinstance(x, Slot)]
        self._rest = list(arguments[len(self._described) + len(self._pointers) :])
        self.is_ready = False

    def first(self, tensors: Sequence[Tensor]) -> None:
        descriptors = [
            TensorDescriptor(tensors[x.base.number], list(x.shape), list(x.strides), list(x.block_shape), x.layout)
            for x in self._described
        ]
        pointers = [tensors[x.number] for x in self._pointers]
        compiled = self._kernel[self._grid](*descriptors, *pointers, *self._rest, **self._constants, **self._options)
        if compiled is None:  # as in Triton's interpreter
            return
        run = copy.copy(compiled.run)
        if self._described:
            inner = getattr(run, "launch", None)
            names = getattr(getattr(inner, "__code__", None), "co_freevars", ())
            if not {"launcher", "tensordesc_meta"} <= set(names):
                return
            found = dict(zip(names, (cell.cell_contents for cell in inner.__closure__), strict=True))
            if any(meta is None for meta in found["tensordesc_meta"]):
                return
            run.launch = found["launcher"]
            self._tiled = [_Encoded(*of) for of in zip(self._described, found["tensordesc_meta"], strict=True)]
        else:
            self._tiled = []
        self._run = run
        self._numbers = [x.number for x in self._pointers]
        self._function = compiled.function, compiled.packed_metadata, None, None, None
        self._last = (*self._rest, *self._constants.values())
        self.is_ready = True

    def again(self, addresses: Sequence[int], stream: int) -> None:
        given = []
        for tiled in self._tiled:
            address = addresses[tiled.number]
            given += tiled.known.get(address) or tiled.at(address)
        given += [addresses[i] for i in self._numbers]
        self._run(*self._grid, stream, *self._function, *given, *self._last)


class _Encoded:
    """Descriptors of one argument, encoded, by address: where memory is used again, so is the descriptor."""

    def __init__(self, described: Described, meta: dict):
        self.number = described.base.number
        self.known: dict[int, list] = {}
        self._described, self._meta = described, meta

    def at(self, address: int) -> list:
        """The encoded descriptor with its shape and strides, as the launcher takes them."""
        from triton.backends.nvidia.driver import make_tensordesc_arg

        if len(self.known) >= _MOST_KEPT:
            self.known.clear()
        encoded = make_tensordesc_arg(replace(self._described, base=_At(address)), self._meta)
        self.known[address] = encoded
        return encoded


@dataclass(frozen=True, slots=True)
class _At:
    """An address that answers as a tensor does."""

    address: int

    def data_ptr(self) -> int:
        return self.address


def _view(memory: Tensor, slot: Slot, offset: int) -> Tensor:
    return memory[offset : offset + slot.size()].view(slot.dtype).view(slot.shape)
