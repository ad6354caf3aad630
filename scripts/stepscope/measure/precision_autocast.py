"""The dtypes that autocast gives to a toy model's parameters, activations, loss and gradients."""

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from stepscope.model.formats import FORMATS

from . import precision
from .precision import Tables

# Of several precisions whose results have one type the first: it is no more than that type.
NAMES = {getattr(torch, one.dtype): name for name, one in reversed(FORMATS.items())}
FIELDS = ("parameter", "input", "output", "output_gradient", "parameter_gradient")


def measure(spec: dict) -> Tables:
    """For each format the dtypes of the model."""
    rows = []
    for name in ("fp16", "bf16"):
        rows += [{"autocast": name} | row for row in _toy(spec, name)]
    return {"toy": rows}


def _toy(spec: dict, name: str) -> list[dict]:
    """A row for each of the layers of a toy model, (batch, 20) -> (batch, 5), in their order, for a
    softmax of what they give, and for the loss."""
    torch.manual_seed(spec["seed"])
    device = spec["device"]
    layers: dict[str, nn.Module] = {
        "linear_1": nn.Linear(20, 10, bias=False),
        "relu": nn.ReLU(),
        "layer_norm": nn.LayerNorm(10),
        "linear_2": nn.Linear(10, 5, bias=False),
    }
    model = nn.Sequential(*layers.values()).to(device)
    softmax = nn.Softmax(dim=-1)
    loss = nn.CrossEntropyLoss()
    modules = layers | {"softmax": softmax, "loss": loss}
    rows = [_watched(role, module) for role, module in modules.items()]
    inputs = torch.randn(8, 20, device=device)
    targets = torch.randint(5, (8,), device=device)
    with precision.autocast(name, device):
        outputs = model(inputs)
        softmax(outputs)
        value = loss(outputs, targets)
    value.backward()
    for row, module in zip(rows, modules.values(), strict=True):
        parameters = list(module.parameters())
        row["parameter"] = names_of(parameters)
        row["parameter_gradient"] = names_of([each.grad for each in parameters])
    return rows


def _watched(role: str, module: nn.Module) -> dict:
    """A row of a module, into which the dtypes come that go into it, come out of it, and come back
    to what came out."""
    row = {"role": role, "kind": type(module).__name__}
    row |= dict.fromkeys(FIELDS, "")

    def passed(_: nn.Module, inputs: object, output: Tensor) -> None:
        row["input"] = names_of(inputs)
        row["output"] = names_of(output)
        output.register_hook(lambda gradient: row.update(output_gradient=names_of(gradient)))

    module.register_forward_hook(passed)
    return row


def names_of(value: object) -> str:
    """The dtypes of the tensors in nested arguments, each once, in their order, joined by ` + `:
    short names, as `fp32`; torch's own of one that is no precision."""
    kinds = [leaf.dtype for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
    names = [NAMES.get(kind, str(kind).removeprefix("torch.")) for kind in kinds]
    return " + ".join(dict.fromkeys(names))
