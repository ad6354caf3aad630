"""Launching a kernel: the second time without Triton's search for the compiled one, which takes longest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor
from triton.experimental.gluon.language import NVMMASharedLayout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


@dataclass(slots=True)
class Described:
    """A tensor that a kernel reaches through the tensor memory accelerator, tile by tile.

    It has what Triton's launcher reads of a TensorDescriptor, whose own checks cost more than the launch.
    """

    base: Tensor
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: tuple[int, ...]
    layout: NVMMASharedLayout
    padding: str = "zero"
    round_f32_to_tf32: bool = False


def launch(kernel: Callable, grid: tuple[int, ...], arguments: Sequence, constants: dict, **options: int) -> None:
    """Run `kernel` on `grid` with its arguments, followed by its compile-time constants in their order.

    A compiled kernel is found by the types of the tensors, what it knows of strides (tuples), and the constants.
    Numbers by themselves do not count: kernels must not be specialized for them. `options` are the compiler's.
    """
    key = (kernel.fn, arguments[0].base.device if isinstance(arguments[0], Described) else arguments[0].device)
    key += (*map(_kind, arguments), *constants.values())
    compiled = _compiled.get(key)
    if compiled is None:
        exact = [_checked(x) if isinstance(x, Described) else x for x in arguments]
        _compiled[key] = kernel[grid](*exact, **constants, **options)  # None in Triton's interpreter
    else:
        compiled[(*grid, 1, 1)[:3]](*arguments, *constants.values())


_compiled: dict[tuple, object] = {}


def _kind(argument: object) -> object:
    """What a kernel is compiled for."""
    if isinstance(argument, Described):
        return argument.base.dtype, argument.block_shape
    if isinstance(argument, Tensor):
        return argument.dtype, argument.data_ptr() % 16
    if isinstance(argument, tuple):  # a stride of 1 becomes a constant, a multiple of 16 elements tells of alignment
        return tuple((step == 1, step % 16 == 0, step >= 2**31) for step in argument)
    return type(argument)


def _checked(x: Described) -> TensorDescriptor:
    """The descriptor for Triton's compiler."""
    return TensorDescriptor(x.base, list(x.shape), list(x.strides), list(x.block_shape), x.layout)
