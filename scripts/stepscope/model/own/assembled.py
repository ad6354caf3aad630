"""A user's model with its batch and its loss, and what is known of it."""

import fnmatch
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from . import inputs, naming, probing, structure
from .loading import load, named_errors
from .reference import RANGES, ModelError, Reference, parse


def build(
    reference: str, keys: dict, context: int, batch: int, device: torch.device | str, seed: int
) -> "OwnModel":
    """A model with random weights on `device`, the same for the same seed, in the types that its
    file builds it in.

    keys: what build() or the architecture's configuration takes, and "ranges", a pattern of paths →
    name. context: tokens; batch: sequences. Seeds PyTorch's global generators. Raises ModelError,
    in one line, for a model that cannot be built; running out of memory passes through as it is.
    """
    parsed = parse(reference)
    passed = dict(keys)
    chosen = passed.pop(RANGES, {})
    if not isinstance(chosen, dict) or not all(isinstance(name, str) for name in chosen.values()):
        raise ModelError(
            f"{reference}: the key {RANGES} has to map patterns of module paths to names"
        )
    torch.manual_seed(seed)
    with torch.device(device):
        built = load(parsed, passed, context)
    module, fed = inputs.chosen(parsed, built)
    with named_errors(parsed, f"{type(module).__name__} cannot be moved to {device}"):
        tensors = (*module.parameters(), *module.buffers())
        if any(each.device.type != torch.device(device).type for each in tensors):
            module.to(device)
    return OwnModel(parsed, keys, module, fed, context, batch, torch.device(device), seed)


def describe(reference: str, keys: dict, context: int, batch: int, seed: int = 0) -> dict:
    """What would be built, how it would be fed, and what a step computes, without a GPU: an
    OwnModel's description with `flops`, as probing.counted() has them; `item`, what a batch is made
    of, and `items`, how many it has.

    In shapes alone, which takes no memory; where that cannot be followed, on the CPU. Raises
    ModelError for a model that cannot be built or run.
    """

    def described() -> dict:
        own = build(reference, keys, context, batch, "cpu", seed)
        doubts = own.description["unknown"]
        if own.refused:
            doubts.append(f"operations: {own.refused}")
            return own.description | {"flops": {}, "items": None, "item": None}
        flops, item = probing.counted(own)
        if uncounted := ", ".join(flops.get("uncounted", [])):
            doubts.append(f"operations of {uncounted}: no formula, so what is counted is the least")
        items = batch * (context if item == "tokens" else 1)
        return own.description | {"flops": flops, "items": items, "item": item}

    with suppress(ModelError), probing.in_shapes_alone():
        return described()
    return described()


@dataclass(eq=False)
class OwnModel:
    """A model as its user wrote it.

    module: in the mode that it was built in, for training; in eval mode for inference. attention:
    what it runs in. refused: why it cannot be measured, in one line, or None. description: what was
    built and how it is fed, ready for JSON.
    """

    reference: Reference
    keys: dict
    module: nn.Module
    fed: inputs.Fed
    context: int
    batch: int
    device: torch.device
    seed: int

    def __post_init__(self) -> None:
        module = self.module
        self.attention: AbstractContextManager = nullcontext()
        self._modes: dict[nn.Module, bool] = {}  # what parts were built in, while all are in eval
        self.refused = structure.refused(module)
        self.found_blocks = structure.blocks_of(module)
        self._chosen = self.keys.get(RANGES, {})
        parts = structure.parts_of(module, self.found_blocks)
        named = naming.renamed(parts, module, self._chosen)
        self._names = naming.Names(module, named)
        names = list(dict.fromkeys(named.values()))
        fed, loss = self.fed.told
        configuration = getattr(module, "config", None)
        attention = getattr(configuration, "_attn_implementation", None)
        self.description = {
            "reference": self.reference.text,
            "keys": self.keys,
            **structure.described(module, self.found_blocks),
            # as transformers chose it
            "attention": attention if isinstance(attention, str) else None,
            "inputs": fed,
            "loss": loss,
            "vocab_size": self.fed.vocab_size,
            "ranges": names,
            "unknown": self._unknown(names),
        }

    @property
    def blocks(self) -> list[nn.Module]:
        """Its repeated modules, or []."""
        return list(self.found_blocks.container) if self.found_blocks else []

    def make_batch(self) -> object:
        """A batch on the device, the same for the same seed. Raises ModelError where the user's
        function fails."""
        place = "cpu" if self.device.type == "meta" else self.device
        generator = torch.Generator(place).manual_seed(self.seed)
        with named_errors(self.reference, "make_batch() fails"):
            return self.fed.make(self.batch, self.context, self.device, generator)

    def loss(self, batch: object) -> Tensor:
        """The forward pass with the loss, a scalar. Raises ModelError for a model or a loss that
        cannot be trained."""
        output = self.forward(batch)
        with named_errors(self.reference, "loss fails"):
            loss = self.fed.loss(output, batch)
        if isinstance(loss, Tensor) and loss.ndim == 0 and loss.requires_grad:
            return loss
        frozen = "; all that it is made of is frozen" if getattr(loss, "ndim", 1) == 0 else ""
        raise ModelError(
            f"{self.reference.text}: the loss has to be a scalar that requires a gradient, not"
            f" {getattr(loss, 'shape', type(loss).__name__)}{frozen}"
        )

    def forward(self, batch: object) -> object:
        """The forward pass as it is trained, without what comes after the module."""
        while self._modes:
            part, mode = self._modes.popitem()
            part.training = mode
        return self._called(batch, with_loss=True)

    def outputs(self, batch: object) -> object:
        """The forward pass without a loss, in eval mode: no dropout."""
        if not self._modes:
            self._modes = {part: part.training for part in self.module.modules()}
            self.module.eval()
        return self._called(batch, with_loss=False)

    def _called(self, batch: object, with_loss: bool) -> object:
        self._names.follow()
        with self.attention, named_errors(self.reference, "forward fails"):
            return self.fed.call(self.module, batch, with_loss)

    def without_hooks(self) -> None:
        """From now on no part has a range: hooks would break up what is compiled."""
        self._names = naming.Names(self.module, {})
        self.description["ranges"] = []
        self.description["unknown"].append("ranges inside the model: compiled code has none")

    def _unknown(self, names: list[str]) -> list[str]:
        """What could not be found out, a line each. names: of its ranges."""
        paths = [path for path, _ in self.module.named_modules()]
        lines = [
            f"ranges: no module has a path like {pattern!r}"
            for pattern in self._chosen
            if not fnmatch.filter(paths, pattern)
        ]
        if self.found_blocks is None:
            lines.append(
                "blocks: no list of modules of one class holds half of the parameters beside"
                " embeddings and head"
            )
        lines += [
            f"range of {name}: no module is called so; name it by the key ranges"
            for name in ("attention", "FFN")
            if name not in names
        ]
        if self.fed.labels == "targets" and not self.fed.is_required:
            lines.append(
                "inference: without targets forward may compute less, as the last position alone"
            )
        return lines
