"""The dtypes that autocast gives to parameters, activations, loss and gradients: of a toy model, and of our own."""

import contextlib
import re
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from stepscope.measure import memory, precision
from stepscope.measure.precision_operators import OperatorLog, missing_operator, name_of, names_of
from stepscope.model import ranges
from stepscope.model.loss import cross_entropy
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import TransformerLM, build_model, random_batch

FORMATS = ("fp16", "bf16")
# Parts of attention that are no modules of their own, by the names of their ranges.
ATTENTION_PARTS = ("attention scores", "mask", "softmax", "attention × V")


class ToyModel(nn.Module):
    """Two linear layers with ReLU and LayerNorm between: (batch, 20) -> (batch, 5)."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.linear_1 = nn.Linear(20, 10, bias=False, device=device)
        self.relu = nn.ReLU()
        self.layer_norm = nn.LayerNorm(10, device=device)
        self.linear_2 = nn.Linear(10, 5, bias=False, device=device)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_2(self.layer_norm(self.relu(self.linear_1(x))))


class Watch:
    """Dtypes that pass through modules and functions, a row a role: `rows[role]` with each field's dtypes in order."""

    def __init__(self) -> None:
        self.rows: dict[str, dict] = {}

    def module(self, role: str, module: nn.Module) -> None:
        """Note what goes into the module and comes out of it; several modules may have one role."""
        row = self._row(role, type(module).__name__)
        row["modules"] += 1
        row["parameter"] |= dict.fromkeys(name_of(each.dtype) for each in module.parameters(recurse=False))
        row["buffer"] |= dict.fromkeys(name_of(each.dtype) for each in module.buffers(recurse=False))
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
        row["input"] |= {names_of(inputs): None}
        row["output"] |= {names_of(output): None}
        if output.requires_grad:
            output.register_hook(lambda gradient: row["output_gradient"].setdefault(name_of(gradient.dtype)))

    def gradients(self, role: str, module: nn.Module) -> None:
        """Note the dtypes of the gradients that its parameters got."""
        found = (each.grad for each in module.parameters(recurse=False) if each.grad is not None)
        self.rows[role]["parameter_gradient"] |= dict.fromkeys(name_of(each.dtype) for each in found)

    def _row(self, role: str, kind: str) -> dict:
        empty = {key: {} for key in ("parameter", "buffer", "input", "output", "output_gradient", "parameter_gradient")}
        return self.rows.setdefault(role, {"kind": kind, "modules": 0} | empty)

    def table(self, **key: str) -> list[dict]:
        """The rows as plain values; where calls differ, their dtypes are joined by ` or `."""

        def plain(value: object) -> object:
            return " or ".join(value) if isinstance(value, dict) else value

        rows = self.rows.items()
        return [key | {"role": role} | {name: plain(value) for name, value in row.items()} for role, row in rows]


def measure(spec: dict) -> dict:
    """For each format the dtypes of both models, and how far loss and gradients are from those in fp32."""
    tables: dict[str, list[dict]] = {"toy": [], "model": [], "attention": [], "gradients": []}
    loss, reference = _run(spec, "fp32", Watch())
    tables["gradients"].append(_compared("fp32", loss, reference, loss, reference))
    for name in FORMATS:
        reason = precision.unsupported(name, "cuda") if spec["device"] == "cuda" else None
        for table, probe in (("toy", _toy), ("model", _model)):
            try:
                found = {table: _unsupported(name, reason)} if reason else probe(spec, name, loss, reference)
            except RuntimeError as error:
                missing = missing_operator(error)
                if missing is None:
                    raise
                found = {table: _unsupported(name, missing)}
            for key, rows in found.items():
                tables[key] += rows
    done = [row["status"] == "ok" for row in tables["toy"] + tables["model"]]
    reasons = [row["reason"] for row in tables["toy"] + tables["model"] if row["reason"]]
    status = "ok" if any(done) else "unsupported"
    return {"status": status, "reason": "" if any(done) else reasons[0], "tables": tables}


def _unsupported(name: str, reason: str) -> list[dict]:
    return [{"autocast": name, "status": "unsupported", "reason": reason}]


def _toy(spec: dict, name: str, *_) -> dict[str, list[dict]]:
    """The toy model's layers, in their order, and its loss."""
    torch.manual_seed(spec["seed"])
    device, watch = spec["device"], Watch()
    model, loss = ToyModel(device), nn.CrossEntropyLoss()
    layers = {**dict(model.named_children()), "loss": loss}
    for role, layer in layers.items():
        watch.module(role, layer)
    inputs, targets = torch.randn(8, 20, device=device), torch.randint(5, (8,), device=device)
    with torch.autocast(device, dtype=precision.dtype(name)):
        value = loss(model(inputs), targets)
    value.backward()
    for role, layer in layers.items():
        watch.gradients(role, layer)
    return {"toy": watch.table(autocast=name, status="ok", reason="")}


def _model(spec: dict, name: str, loss: float, reference: dict[str, Tensor]) -> dict[str, list[dict]]:
    """Our model's modules by what they stand for, the operators of its attention, and its gradients against fp32's."""
    watch = Watch()
    own_loss, own = _run(spec, name, watch)
    return {
        "model": watch.table(autocast=name, status="ok", reason=""),
        "attention": [{"autocast": name} | row for row in _attention_operators(spec, name)],
        "gradients": [_compared(name, own_loss, own, loss, reference)],
    }


def _build(spec: dict) -> tuple[TransformerLM, Tensor, Tensor]:
    shape, device, seed = ModelShape.of(spec), spec["device"], spec["seed"]
    memory.require_room(shape, device)
    model = build_model(shape, spec["context"], "naive", device, seed)
    return model, *random_batch(shape.vocab_size, spec["batch"], spec["context"], device, seed)


def _run(spec: dict, name: str, watch: Watch) -> tuple[float, dict[str, Tensor]]:
    """Loss, and gradients by parameter, of one forward and backward pass that `watch` looks at."""
    model, tokens, targets = _build(spec)
    roles = {_role(path): path for path, module in model.named_modules() if _is_shown(path, module)}
    members = [(_role(path), module) for path, module in model.named_modules() if _role(path) in roles]
    for role, module in members:
        watch.module(role, module)
    for block in model.blocks:
        block.attention.attend = watch.function("blocks.*.attention.attend", "attention core", block.attention.attend)
    loss = watch.function("loss", "cross-entropy", cross_entropy)
    with precision.autocast(name, spec["device"]):
        value = loss(model(tokens), targets)
    value.backward()
    for role, module in members:
        watch.gradients(role, module)
    return value.item(), {path: each.grad for path, each in model.named_parameters()}


def _role(path: str) -> str:
    """A module's path without its block's number."""
    return re.sub(r"^blocks\.\d+", "blocks.*", path)


def _is_shown(path: str, module: nn.Module) -> bool:
    return bool(path) and not isinstance(module, nn.ModuleList)


def _attention_operators(spec: dict, name: str) -> list[dict]:
    """Each operator of the first block's attention core, in its order, with its dtypes."""
    model, tokens, _ = _build(spec)
    log = OperatorLog()

    @contextlib.contextmanager
    def opened(part: str) -> Iterator[None]:
        before, log.part = log.part, part
        yield
        log.part = before

    ranges.turn_on(opened)
    try:
        with precision.autocast(name, spec["device"]), log:
            # Only the first block: all do the same.
            model.blocks[0](model.embedding(tokens))
    finally:
        ranges.turn_on(None)
    return [row for row in log.rows if row["part"] in ATTENTION_PARTS]


def _compared(
    name: str, loss: float, gradients: dict[str, Tensor], loss_fp32: float, reference: dict[str, Tensor]
) -> dict:
    """Loss and gradients beside those in fp32.

    The embedding's gradient is left out: most of its rows are zero because no token asked for them. `zero_share` is
    the share of the other elements that are exactly zero, `error` the norm of the difference over that of fp32's.
    """
    own, other = (
        torch.cat([each.flatten().double() for path, each in of.items() if not path.startswith("embedding")])
        for of in (gradients, reference)
    )
    return {
        "autocast": name,
        "loss": loss,
        "loss_fp32": loss_fp32,
        "zero_share": (own == 0).double().mean().item(),
        "not_finite": int((~own.isfinite()).sum()),
        "error": ((own - other).norm() / other.norm()).item(),
        "elements": own.numel(),
    }
