"""What 16 and 8 bits make of a linear layer's products, of the numbers that a training step brings
to them."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from stepscope.measure import precision
from stepscope.measure.models.transformer import Model
from stepscope.measure.precision import Tables, attempt, refused
from stepscope.measure.precision_normalisation import PLAIN, against
from stepscope.model.precisions import fp8
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import Linear

PRODUCTS = ("output of a linear layer", "gradient of its input", "gradient of its weight")
# x (tokens, d_in), weight (d_out, d_in) -> (tokens, d_out)
Product = Callable[[Tensor, Tensor], Tensor]


class Factors(NamedTuple):
    """What goes into a linear layer's products: x (tokens, d_in), weight (d_out, d_in) and the
    gradient of its output (tokens, d_out)."""

    x: Tensor
    weight: Tensor
    gradient: Tensor


def measure(spec: dict) -> Tables:
    """Each linear layer of the blocks in its order, with a row for each of its products and each
    format."""
    device = spec["device"]
    tokens = spec["batch"] * spec["context"]
    reason = fp8.unsupported(ModelShape.of(spec), tokens)
    calls = {"bf16": _rounded("bf16"), "fp16": _rounded("fp16"), "fp8": fp8.linear}
    rows = []
    for number, factors in enumerate(_factors(spec), start=1):
        exact = products(F.linear, *(factor.double() for factor in factors))
        for name, call in calls.items():
            if name == "fp8" and reason:
                found = None
                refusal = refused(reason)
            else:
                found, refusal = attempt(partial(products, call, *factors), name, device)
            for i, operation in enumerate(PRODUCTS):
                row = {
                    "operation": operation,
                    "way": PLAIN,
                    "format": name,
                    "quantity": "layer",
                    "value": float(number),
                }
                rows.append(row | (against(exact[i], found[i].double()) if found else refusal))
    return {"forced": rows}


def products(
    call: Product, x: Tensor, weight: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The layer's output, and the gradients of x and of the weight that come of the output's
    `gradient`."""
    x = x.clone().requires_grad_()
    weight = weight.clone().requires_grad_()
    output = call(x, weight)
    output.backward(gradient.to(output.dtype))
    assert x.grad is not None and weight.grad is not None, "both want gradients"
    return output.detach(), x.grad, weight.grad


def _rounded(name: str) -> Product:
    return lambda x, weight: F.linear(x.to(precision.dtype(name)), weight.to(precision.dtype(name)))


def _factors(spec: dict) -> list[Factors]:
    """Those of each linear layer in a step of the untrained model, in fp32.

    Raises MemoryError for a model that the memory does not hold.
    """
    found: dict[int, Factors] = {}  # by the layer's number in the forward pass
    waiting = itertools.count()
    model = Model(spec)

    def noted(layer: Linear, inputs: tuple[Tensor], output: Tensor) -> None:
        number = next(waiting)
        x = inputs[0].detach().flatten(0, -2)
        weight = layer.weight.detach()

        def note(gradient: Tensor) -> None:
            found[number] = Factors(x, weight, gradient.flatten(0, -2))

        output.register_hook(note)

    for layer in (module for module in model.blocks.modules() if isinstance(module, Linear)):
        layer.register_forward_hook(noted)
    model.loss().backward()
    return [found[number] for number in sorted(found)]
