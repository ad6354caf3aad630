"""Kernels to launch one after the other, worked out once for all tensors of the same shapes,
strides and types.

The first time, Triton looks at every argument, compiles the kernel if need be, and launches it. All
that it looks at is the same in later runs of the plan, which launch what was compiled with other
addresses: the host has less to do.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

_ALIGNED = 256  # bytes of addresses of scratch, as of all that PyTorch allocates on a GPU


class Slot(NamedTuple):
    """What a plan knows of a tensor: its number among those that the plan runs with, and all but
    its address."""

    number: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize


Layout = tuple[tuple[int, ...], tuple[int, ...], torch.dtype, torch.device]


class Kernel(Protocol):
    """What @triton.jit makes of a function: with a grid in brackets it is what launches it."""

    def __getitem__(self, grid: tuple[int, ...], /) -> Callable[..., Any]: ...


def layouts_of(tensors: Sequence[Tensor]) -> tuple[Layout, ...]:
    """What a plan depends on: all of a slot but its number."""
    return tuple([(x.shape, x.stride(), x.dtype, x.device) for x in tensors])


class Described(NamedTuple):
    """A tensor, by its number, that a kernel reaches through the tensor memory accelerator (TMA),
    tile by tile."""

    number: int
    at: Callable[[int], TensorDescriptor]  # its descriptor, by its address


class _Launch:
    """A kernel with its arguments, where slots and those described stand for tensors."""

    def __init__(
        self,
        kernel: Kernel,
        grid: tuple[int, ...],
        arguments: Sequence,
        constants: dict,
        options: dict,
    ):
        self._kernel, self.constants, self._options = kernel, constants, options
        self._grid = (*grid, 1, 1)[:3]
        self._arguments = [*arguments, *constants.values()]
        self._pointers = [(i, x.number) for i, x in enumerate(arguments) if isinstance(x, Slot)]
        self._described = []
        for i, x in enumerate(arguments):
            if isinstance(x, Described):
                self._described.append((i, x.number, x.at))
        self.again: Callable[[Sequence[int]], None] | None = None

    def first(self, tensors: Sequence[Tensor]) -> None:
        """Launch it by Triton, which compiles it if need be."""
        arguments = self._filled(tensors, [x.data_ptr() for x in tensors])
        given = arguments[: len(arguments) - len(self.constants)]
        compiled = self._kernel[self._grid](*given, **self.constants, **self._options)
        if compiled is not None:  # as in Triton's interpreter
            launch = compiled[self._grid]
            self.again = lambda addresses: launch(*self._filled(addresses, addresses))

    def _filled(self, tensors: Sequence, addresses: Sequence[int]) -> list:
        arguments = self._arguments.copy()
        for i, number in self._pointers:
            arguments[i] = tensors[number]
        for i, number, at in self._described:
            arguments[i] = at(addresses[number])
        return arguments


class Plan:
    """Kernels, one after the other, for tensors of these layouts, at multiples of 16 bytes. A
    module of kernels adds launches, with slots in place of tensors; `run` makes them all."""

    def __init__(self, layouts: Sequence[Layout]):
        self.slots = [Slot(i, *layout) for i, layout in enumerate(layouts)]
        self.device = self.slots[0].device
        self.launches: list[_Launch] = []
        self._scratch: list[tuple[Slot, int]] = []
        self._bytes = 0

    def scratch(self, *shape: int, dtype: torch.dtype) -> Slot:
        """Memory of this shape, contiguous, for as long as the plan runs."""
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        slot = Slot(len(self.slots), shape, strides, dtype, self.device)
        self.slots.append(slot)
        self._scratch.append((slot, self._bytes))
        self._bytes += -(-math.prod(shape) * dtype.itemsize // _ALIGNED) * _ALIGNED
        return slot

    def launch(
        self,
        kernel: Kernel,
        grid: tuple[int, ...],
        arguments: Sequence,
        constants: dict,
        **options: int,
    ) -> None:
        """Launch `kernel` on `grid` with its arguments, in its order: tensors by TMA, other
        tensors, strides and numbers; then `constants`, all that it has at compile time; `options`
        are the compiler's."""
        self.launches.append(_Launch(kernel, grid, arguments, constants, options))

    def run(self, tensors: Sequence[Tensor]) -> None:
        """Launch all kernels on the current stream of the tensors' device, whichever is the current
        device. The tensors have the layouts for which the plan was made."""
        if self.device.type == "cuda" and self.device.index != torch.cuda.current_device():
            with torch.cuda.device(self.device):  # Triton launches on the current one
                return self.run(tensors)
        addresses = [x.data_ptr() for x in tensors]
        if self._scratch:  # one allocation takes the host less time than several
            memory = torch.empty(self._bytes, dtype=torch.uint8, device=self.device)
            begin = memory.data_ptr()
            addresses += [begin + offset for _, offset in self._scratch]
        for launch in self.launches:
            if launch.again:
                launch.again(addresses)
            else:
                views = (
                    memory[at:].view(x.dtype)[: math.prod(x.shape)].view(x.shape)
                    for x, at in self._scratch
                )
                launch.first([*tensors, *views])
