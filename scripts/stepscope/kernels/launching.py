"""Launching kernels with little time of the host: what follows from shapes is worked out once, then only addresses
change. Triton's own search for the compiled kernel, and its description of a tensor to the tensor memory accelerator
(TMA), each take the host longer than the launch."""

import contextlib
import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from stepscope.kernels.driver import recorded

_MOST_KEPT = 4096  # encoded descriptors of an argument; a training step needs one for each layer
_ALIGNED = 512  # bytes, as PyTorch's allocator aligns what it gives
_DESCRIPTOR = 128  # bytes, as a kernel's parameter
# What a launch may have beside its function and parameters, where it has none of it.
_PLAIN = {
    "num_ctas": 1,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "global_scratch_size": 0,
    "profile_scratch_size": 0,
}


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
        self._index = self.device.index if self.device.type == "cuda" else None
        self.slots = [Slot(i, x.shape, x.stride(), x.dtype) for i, x in enumerate(tensors)]
        self._launches: list[_Launch] = []
        self._scratch: list[Slot] = []
        self._offsets: list[int] = []
        self.scratch_bytes = 0  # of all scratch(), in one piece

    def scratch(self, *shape: int, dtype: torch.dtype) -> Slot:
        """Memory of this shape, contiguous, for as long as the plan runs."""
        strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        slot = Slot(len(self.slots), shape, strides, dtype)
        self.slots.append(slot)
        self._scratch.append(slot)
        self._offsets.append(self.scratch_bytes)
        self.scratch_bytes += -(-slot.size() // _ALIGNED) * _ALIGNED
        return slot

    def launch(
        self, kernel: Callable, grid: tuple[int, ...], arguments: Sequence, constants: dict, **options: int
    ) -> None:
        """Launch `kernel` on `grid` with its arguments, in this order: tensors by TMA, other tensors, strides and
        numbers; followed by its compile-time constants in their order. `options` are the compiler's."""
        self._launches.append(_Launch(kernel, (*grid, 1, 1)[:3], arguments, constants, options))

    def run(self, tensors: Sequence[Tensor], addresses: list[int], stream: int) -> None:
        """Launch all kernels on a stream of the tensors' device, whichever is the current one. The tensors, at these
        addresses, are like those for which the plan was made, aligned alike."""
        if self._index is not None and torch._C._cuda_getDevice() != self._index:
            with torch.cuda.device(self.device):  # a kernel runs where its code was loaded, on the current device
                return self._run(tensors, addresses, stream)
        return self._run(tensors, addresses, stream)

    def recorded(self) -> list[tuple] | None:
        """What the driver is told of each launch, with the places in its parameters where addresses stand; None where
        that is not all that belongs to a launch. After the first run.

        Each is (function, grid, block, bytes of shared memory, parameters, places), a place (offset, number of the
        tensor, bytes from its begin, whether it is in a descriptor); scratch counts as one tensor, after the others.
        """
        # Addresses that are apart and belong to nobody else: each is found again in the parameters.
        memory = torch.empty(len(self.slots) * _ALIGNED, dtype=torch.uint8, device=self.device)
        addresses = [memory.data_ptr() + i * _ALIGNED for i in range(len(self.slots))]
        given = len(self.slots) - len(self._scratch)
        starts = [(i, 0) for i in range(given)] + [(given, offset) for offset in self._offsets]
        with torch.cuda.device(self.device) if self._index is not None else contextlib.nullcontext():
            found = [launch.recorded(dict(zip(addresses, starts, strict=True))) for launch in self._launches]
        return None if None in found else found

    def _run(self, tensors: Sequence[Tensor], addresses: list[int], stream: int) -> None:
        memory = None
        if self._scratch:
            memory = torch.empty(self.scratch_bytes, dtype=torch.uint8, device=self.device)
            begin = memory.data_ptr()
            addresses = addresses + [begin + offset for offset in self._offsets]
        for launch in self._launches:
            if launch.again is not None:
                launch.again(addresses, stream)
            else:
                views = [_view(memory, slot, at) for slot, at in zip(self._scratch, self._offsets, strict=True)]
                launch.first([*tensors, *views])


class _Launch:
    """One kernel of a plan. The first launch is Triton's own, which compiles if need be.

    `again` launches with other addresses, on a stream; it stays None where Triton's launcher is not as expected here,
    and each launch is Triton's own.
    """

    def __init__(self, kernel: Callable, grid: tuple[int, int, int], arguments: Sequence, constants: dict, options):
        self._kernel, self._grid, self._constants, self._options = kernel, grid, constants, options
        self._described = [x for x in arguments if isinstance(x, Described)]
        self._pointers = [x for x in arguments if isinstance(x, Slot)]
        self._rest = list(arguments[len(self._described) + len(self._pointers) :])
        self.compiled: object = None
        self.again: Callable[[Sequence[int], int], None] | None = None

    def first(self, tensors: Sequence[Tensor]) -> None:
        descriptors = [
            TensorDescriptor(tensors[x.base.number], list(x.shape), list(x.strides), list(x.block_shape), x.layout)
            for x in self._described
        ]
        pointers = [tensors[x.number] for x in self._pointers]
        self.compiled = self._kernel[self._grid](
            *descriptors, *pointers, *self._rest, **self._constants, **self._options
        )
        if self.compiled is not None:  # as in Triton's interpreter
            self.again = self._prepared(self.compiled)

    def recorded(self, starts: dict[int, tuple[int, int]]) -> tuple | None:
        """As Plan.recorded() has it. `starts` are the addresses of all tensors, and how places name them."""
        metadata = getattr(self.compiled, "metadata", None)
        if self.again is None or any(getattr(metadata, name, than) != than for name, than in _PLAIN.items()):
            return None
        found = recorded(lambda stream: self.again(list(starts), stream))
        if found is None:
            return None
        descriptors = [offset for offset, size in found.places if size == _DESCRIPTOR]
        numbers = [(o, int.from_bytes(found.parameters[o : o + size], "little")) for o, size in found.places]
        pointers = [(offset, *starts[number], False) for offset, number in numbers if number in starts]
        if (len(descriptors), len(pointers)) != (len(self._described), len(self._pointers)):
            return None
        described = zip(descriptors, self._described, strict=True)
        in_order = list(starts.values())
        places = [*((offset, *in_order[x.base.number], True) for offset, x in described), *pointers]
        return found.function, found.grid, found.block, found.shared_bytes, found.parameters, places

    def _prepared(self, compiled: object) -> Callable[[Sequence[int], int], None] | None:
        run, encoded = copy.copy(compiled.run), []
        launch = getattr(run, "launch", None)
        if self._described:
            names = getattr(getattr(launch, "__code__", None), "co_freevars", ())
            if not {"launcher", "tensordesc_meta"} <= set(names):
                return None
            found = dict(zip(names, (cell.cell_contents for cell in launch.__closure__), strict=True))
            if any(meta is None for meta in found["tensordesc_meta"]):
                return None
            launch = found["launcher"]
            encoded = [_Encoded(*of) for of in zip(self._described, found["tensordesc_meta"], strict=True)]
        # What Triton adds to the arguments on their way, seen once.
        passed = []
        run.launch = lambda *all_: passed.extend(all_)
        stream, given = object(), object()
        run(*self._grid, stream, compiled.function, compiled.packed_metadata, None, None, None, given)
        if launch is None or passed.count(stream) != 1:
            return None
        head, tail = passed[: passed.index(stream)], passed[passed.index(stream) + 1 :]
        numbers = [x.number for x in self._pointers]
        last = (*self._rest, *self._constants.values())

        def arguments(addresses: Sequence[int]) -> list:
            collected = []
            for x in encoded:
                address = addresses[x.number]
                collected += x.known.get(address) or x.at(address)
            collected += [addresses[i] for i in numbers]
            collected += last
            return collected

        if tail and tail[-1] is given:  # one after the other, as until Triton 3.6
            del tail[-1]
            return lambda addresses, stream: launch(*head, stream, *tail, *arguments(addresses))
        if tail and tail[-1] == (given,):  # together, as from Triton 3.7 on
            del tail[-1]
            return lambda addresses, stream: launch(*head, stream, *tail, arguments(addresses))
        return None


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
