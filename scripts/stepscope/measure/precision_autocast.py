"""The dtypes that autocast gives to parameters, activations, loss and gradients: of a toy model,
and of our own."""

import re
from collections import OrderedDict
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from stepscope.measure import memory, precision
from stepscope.measure.precision import attempt, name_of, names_of
from stepscope.model.losses.own import cross_entropy
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model, random_batch

FORMATS = ("fp16", "bf16")


def toy_model(device: str) -> nn.Module:
    """Two linear layers with ReLU and LayerNorm between: (batch, 20) -> (batch, 5)."""
    first = nn.Linear(20, 10, bias=False, device=device)
    last = nn.Linear(10, 5, bias=False, device=device)
    layers: dict[str, nn.Module] = {
        "linear_1": first,
        "relu": nn.ReLU(),
        "layer_norm": nn.LayerNorm(10, device=device),
        "linear_2": last,
    }
    return nn.Sequential(OrderedDict(layers))


class Watch:
    """Dtypes that pass through modules and functions, a row a role: `rows[role]` with each field's
    dtypes in order."""

    def __init__(self) -> None:
        self.rows: dict[str, dict] = {}

    def module(self, role: str, module: nn.Module) -> None:
        """Note what goes into the module and comes out of it; several modules may have one role."""
        row = self._row(role, type(module).__name__)
        for each in module.parameters(recurse=False):
            row["parameter"].setdefault(name_of(each.dtype))
        module.register_forward_hook(lambda _, inputs, output: self.passed(role, inputs, output))

    def function(self, role: str, of: str, call):
        """`call` with what goes in and comes out noted; `of` names what it computes."""
        self._row(role, of)

        def watched(*inputs):
            output = call(*inputs)
            self.passed(role, inputs, output)
            return output

        return watched

    def passed(self, role: str, inputs: object, output: Tensor) -> None:
        """Note one call, and the dtype of the gradient that will come back to its output."""
        row = self.rows[role]
        row["input"].setdefault(names_of(inputs))
        row["output"].setdefault(names_of(output))

        def note(gradient: Tensor) -> None:
            row["output_gradient"].setdefault(name_of(gradient.dtype))

        if output.requires_grad:
            output.register_hook(note)

    def gradients(self, role: str, module: nn.Module) -> None:
        """Note the dtypes of the gradients that its parameters got."""
        for each in module.parameters(recurse=False):
            if each.grad is not None:
                self.rows[role]["parameter_gradient"].setdefault(name_of(each.grad.dtype))

    def _row(self, role: str, kind: str) -> dict:
        row: dict = {"kind": kind}
        for key in ("parameter", "input", "output", "output_gradient", "parameter_gradient"):
            row[key] = {}  # dtypes in the order in which they came, each once
        return self.rows.setdefault(role, row)

    def table(self, name: str) -> list[dict]:
        """The rows of autocast in a format as plain values; where calls differ, their dtypes are
        joined by ` or `."""

        def plain(value: str | dict) -> str:
            return " or ".join(value) if isinstance(value, dict) else value

        found = []
        for role, row in self.rows.items():
            key = {"autocast": name, "status": "ok", "reason": "", "role": role}
            found.append(key | {field: plain(value) for field, value in row.items()})
        return found


def measure(spec: dict) -> dict:
    """For each format the dtypes of both models."""
    tables: dict[str, list[dict]] = {"toy": [], "model": []}
    for name in FORMATS:
        for table, probe in (("toy", _toy), ("model", _model)):
            found, reason = attempt(partial(probe, spec, name), name, spec["device"])
            failed = {"autocast": name, "status": "unsupported", "reason": reason}
            tables[table] += found or [failed]
    tried = tables["toy"] + tables["model"]
    if any(row["status"] == "ok" for row in tried):
        return {"status": "ok", "reason": "", "tables": tables}
    return {"status": "unsupported", "reason": tried[0]["reason"], "tables": tables}


def _toy(spec: dict, name: str) -> list[dict]:
    """The toy model's layers, in their order, and its loss."""
    torch.manual_seed(spec["seed"])
    device, watch = spec["device"], Watch()
    model, loss = toy_model(device), nn.CrossEntropyLoss()
    layers = {**dict(model.named_children()), "loss": loss}
    for role, layer in layers.items():
        watch.module(role, layer)
    inputs, targets = torch.randn(8, 20, device=device), torch.randint(5, (8,), device=device)
    with torch.autocast(device, dtype=precision.dtype(name)):
        value = loss(model(inputs), targets)
    value.backward()
    for role, layer in layers.items():
        watch.gradients(role, layer)
    return watch.table(name)


def _model(spec: dict, name: str) -> list[dict]:
    """Our model's modules by what they stand for, in one forward and backward pass.

    Raises MemoryError for a model that the memory does not hold.
    """
    shape, device, seed = ModelShape.of(spec), spec["device"], spec["seed"]
    watch = Watch()
    memory.require_room(shape, device)
    model = build_model(shape, spec["context"], "naive", device, seed)
    tokens, targets = random_batch(shape.vocab_size, spec["batch"], spec["context"], device, seed)
    members = []
    for path, module in model.named_modules():
        if path and not isinstance(module, nn.ModuleList):
            members.append((re.sub(r"^blocks\.\d+", "blocks.*", path), module))
    for role, module in members:
        watch.module(role, module)
    for block in model.blocks:
        attention: Any = block.attention  # one of ours, whose core is a plain attribute
        role = "blocks.*.attention.attend"
        attention.attend = watch.function(role, "attention core", attention.attend)
    loss = watch.function("loss", "cross-entropy", cross_entropy)
    with precision.autocast(name, device):
        value = loss(model(tokens), targets)
    value.backward()
    for role, module in members:
        watch.gradients(role, module)
    return watch.table(name)
