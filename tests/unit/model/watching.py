"""Comparing two differentiable functions, and recording what PyTorch executes."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def assert_same(ours, reference, *inputs, rtol=1e-10, atol=1e-12):
    """Assert that two functions of the same tensors have the same values and the same gradients."""
    results = [_value_and_gradients(function, inputs) for function in (ours, reference)]
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=rtol, atol=atol)


def _value_and_gradients(function, inputs):
    leaves = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs]
    value = function(*leaves)
    # A fixed random direction: a plain sum would hide errors that cancel (the gradient of
    # sum(softmax) is zero).
    direction = torch.randn(
        value.shape, generator=torch.Generator().manual_seed(1), dtype=value.dtype
    )
    gradients = torch.autograd.grad(value, [x for x in leaves if x.requires_grad], direction)
    return [value.detach(), *gradients]


class Recorder(TorchDispatchMode):
    """Every operation PyTorch executes: `.names`, and `.calls` as (name, arguments)."""

    def __init__(self):
        super().__init__()
        self.calls = []

    @property
    def names(self):
        return [name for name, _ in self.calls]

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls.append((function.overloadpacket.__name__, args))
        return function(*args, **(kwargs or {}))
