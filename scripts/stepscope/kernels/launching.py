"""Kernels to launch one after the other, worked out once for all tensors of the same shapes, strides and types."""

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


class Slot(NamedTuple):
    """What a plan knows of a tensor: its number among those that the plan runs with, and all but its address."""

    number: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    def stride(self, dimension: int | None = None) -> tuple[int, ...] | int:
        """As a tensor's."""
        return self.strides if dimension is None else self.strides[dimension]

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize


class Described(NamedTuple):
    """A tensor that a kernel reaches through the tensor memory accelerator (TMA), tile by tile."""

    slot: Slot
    shape: list[int]
    strides: list[int]
    tile: list[int]
    layout: NVMMASharedLayout

    def of(self, tensor: Tensor) -> TensorDescriptor:
        """The descriptor of a tensor like the slot."""
        return TensorDescriptor(tensor, self.shape, self.strides, self.tile, self.layout)


def slots_of(tensors: Sequence[Tensor]) -> tuple[Slot, ...]:
    """What a plan depends on."""
    return tuple(Slot(i, x.shape, x.stride(), x.dtype, x.device) for i, x in enumerate(tensors))


class Plan:
    """Kernels, one after the other, for tensors like `slots`. A module of kernels adds launches, with slots in place of
    tensors; `run` makes them all, by Triton."""

    def __init__(self, slots: Sequence[Slot]):
        self.slots = list(slots)
        self.device = slots[0].device
        self._scratch: list[Slot] = []
        self._launches: list[tuple[Callable, tuple, Sequence, dict]] = []

    def scratch(self, *shape: int, dtype: torch.dtype) -> Slot:
        """Memory of this shape, contiguous, for as long as the plan runs."""
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        slot = Slot(len(self.slots), shape, strides, dtype, self.device)
        self.slots.append(slot)
        self._scratch.append(slot)
        return slot

    def launch(
        self, kernel: Callable, grid: tuple[int, ...], arguments: Sequence, constants: dict, **options: int
    ) -> None:
        """Launch `kernel` on `grid` with its arguments, in its order: tensors by TMA, other tensors, strides and
        numbers; `constants` are its compile-time constants, `options` the compiler's."""
        self._launches.append((kernel, grid, arguments, constants | options))

    def run(self, tensors: Sequence[Tensor]) -> None:
        """Launch all kernels on the current stream of the tensors' device, whichever is the current device. The tensors
        are like the slots for which the plan was made."""
        on_device = torch.cuda.device(self.device) if self.device.type == "cuda" else contextlib.nullcontext()
        with on_device:  # Triton launches on the current one
            scratch = [torch.empty(x.shape, dtype=x.dtype, device=self.device) for x in self._scratch]
            found = [*tensors, *scratch]
            for kernel, grid, arguments, constants in self._launches:
                kernel[grid](*(_filled(x, found) for x in arguments), **constants)


def _filled(argument: object, tensors: Sequence[Tensor]) -> object:
    if isinstance(argument, Slot):
        return tensors[argument.number]
    return argument.of(tensors[argument.slot.number]) if isinstance(argument, Described) else argument
