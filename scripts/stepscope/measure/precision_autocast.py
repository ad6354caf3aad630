"""The dtypes that autocast gives to parameters, activations, loss and gradients: of a toy model,
and of our own."""

import re
from collections import OrderedDict, defaultdict
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from stepscope.measure import precision
from stepscope.measure.models.transformer import Model
from stepscope.measure.precision import Tables, attempt, names_of
from stepscope.model.losses.own import cross_entropy

FORMATS = ("fp16", "bf16")


def toy_model(device: str) -> nn.Module:
    """Two linear layers with ReLU and LayerNorm between: (batch, 20) -> (batch, 5)."""
    layers: dict[str, nn.Module] = {
        "linear_1": nn.Linear(20, 10, bias=False),
        "relu": nn.ReLU(),
        "layer_norm": nn.LayerNorm(10),
        "linear_2": nn.Linear(10, 5, bias=False),
    }
    return nn.Sequential(OrderedDict(layers)).to(device)


FIELDS = ("parameter", "input", "output", "output_gradient", "parameter_gradient")


class Watch:
    """Dtypes that pass through modules and functions, by role and field: each once, in the order in
    which they came."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}  # role -> what has it
        self._seen: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self._modules: list[tuple[str, nn.Module]] = []

    def module(self, role: str, module: nn.Module) -> None:
        """Note what goes into the module and comes out of it; several modules may have one role."""
        self._kinds.setdefault(role, type(module).__name__)
        self._modules.append((role, module))
        module.register_forward_hook(lambda _, inputs, output: self.passed(role, inputs, output))

    def function(self, role: str, of: str, call):
        """`call` with what goes in and comes out noted; `of` names what it computes."""
        self._kinds[role] = of

        def watched(*inputs):
            output = call(*inputs)
            self.passed(role, inputs, output)
            return output

        return watched

    def passed(self, role: str, inputs: object, output: Tensor) -> None:
        """Note one call, and the dtype of the gradient that will come back to its output."""
        self._note(role, "input", inputs)
        self._note(role, "output", output)
        if output.requires_grad:
            output.register_hook(lambda gradient: self._note(role, "output_gradient", gradient))

    def _note(self, role: str, field: str, tensors: object) -> None:
        self._seen[role, field].setdefault(names_of(tensors))

    def table(self, name: str) -> list[dict]:
        """The rows of autocast in a format as plain values, those of parameters and their gradients
        with them; where calls differ, their dtypes are joined by ` or `."""
        for role, module in self._modules:
            for each in module.parameters(recurse=False):
                self._note(role, "parameter", each)
                if each.grad is not None:
                    self._note(role, "parameter_gradient", each.grad)
        found = []
        for role, kind in self._kinds.items():
            key = {"autocast": name, "status": "ok", "reason": "", "role": role, "kind": kind}
            found.append(key | {field: " or ".join(self._seen[role, field]) for field in FIELDS})
        return found


def measure(spec: dict) -> Tables:
    """For each format the dtypes of both models."""
    tables: Tables = {"toy": [], "model": []}
    for name in FORMATS:
        for table, probe in (("toy", _toy), ("model", _model)):
            found, refusal = attempt(partial(probe, spec, name), name, spec["device"])
            tables[table] += found or [{"autocast": name} | refusal]
    return tables


def _toy(spec: dict, name: str) -> list[dict]:
    """The toy model's layers, in their order, and its loss."""
    torch.manual_seed(spec["seed"])
    device = spec["device"]
    watch = Watch()
    model = toy_model(device)
    loss = nn.CrossEntropyLoss()
    for role, layer in [*model.named_children(), ("loss", loss)]:
        watch.module(role, layer)
    inputs = torch.randn(8, 20, device=device)
    targets = torch.randint(5, (8,), device=device)
    with precision.autocast(name, device):
        value = loss(model(inputs), targets)
    value.backward()
    return watch.table(name)


def _model(spec: dict, name: str) -> list[dict]:
    """Our model's modules by what they stand for, in one forward and backward pass.

    Raises MemoryError for a model that the memory does not hold.
    """
    device = spec["device"]
    watch = Watch()
    model = Model(spec)
    for path, module in model.module.named_modules():
        if path and not isinstance(module, nn.ModuleList):
            watch.module(re.sub(r"^blocks\.\d+", "blocks.*", path), module)
    for block in model.blocks:
        attention: Any = block.attention  # one of ours, whose core is a plain attribute
        role = "blocks.*.attention.attend"
        attention.attend = watch.function(role, "attention core", attention.attend)
    loss = watch.function("loss", "cross-entropy", cross_entropy)
    with precision.autocast(name, device):
        value = loss(model.outputs(), model.targets)
    value.backward()
    return watch.table(name)
