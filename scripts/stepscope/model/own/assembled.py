"""A user's model with its batch and its loss, and what is known of it."""

import fnmatch
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property

import torch
from torch import Tensor, nn

from stepscope.model.own import flops, inputs, naming, probing, structure
from stepscope.model.own.loading import load, named_errors
from stepscope.model.own.reference import ModelError, Reference, parse

RANGES = "ranges"  # the key that names parts; not passed on to build()


def build(
    reference: str, keys: dict, context: int, batch: int, device: torch.device | str, seed: int
) -> "OwnModel":
    """A model with random weights on `device`, the same for the same seed, in the types that its
    file builds it in; an architecture in fp32 unless a key `dtype` says otherwise, since that of a
    configuration is how weights are stored.

    keys: what build() or the architecture's configuration takes, and "ranges", a pattern of paths →
    name. context: tokens; batch: sequences. Seeds PyTorch's global generators. Raises ModelError,
    in one line, for a model that cannot be built; running out of memory passes through as it is.
    """
    parsed = parse(reference)
    chosen = keys.get(RANGES, {})
    if not isinstance(chosen, dict) or not all(isinstance(name, str) for name in chosen.values()):
        raise ModelError(
            f"{reference}: the key {RANGES} has to map patterns of module paths to names"
        )
    torch.manual_seed(seed)
    passed = {name: value for name, value in keys.items() if name != RANGES}
    with torch.device(device):
        built = load(parsed, passed, context)
    module, fed = inputs.chosen(parsed, built)
    with named_errors(parsed, f"{type(module).__name__} cannot be moved to {device}"):
        tensors = (*module.parameters(), *module.buffers())
        if any(each.device.type != torch.device(device).type for each in tensors):
            module.to(device)
        if parsed.name:
            _cast(module, getattr(torch, keys.get("dtype", "float32")))
    return OwnModel(parsed, keys, module, fed, context, batch, torch.device(device), seed)


def _cast(module: nn.Module, dtype: torch.dtype) -> None:
    """Have a model of another floating type in this one; complex tables, and those beside
    parameters that have it already, stay."""
    if any(each.dtype != dtype for each in module.parameters()):
        for each in (*module.parameters(), *module.buffers()):
            if each.is_floating_point():
                each.data = each.data.to(dtype)


def describe(reference: str, keys: dict, context: int, batch: int, seed: int = 0) -> dict:
    """What would be built, how it would be fed, and what a step computes: OwnModel.description,
    without a GPU.

    In shapes alone, which takes no memory; where that cannot be followed, on the CPU. Raises
    ModelError for a model that cannot be built or run.
    """
    with probing.in_shapes_alone():
        try:
            own = build(reference, keys, context, batch, "cpu", seed)
        except ModelError:
            own = None
        if own is not None:
            own.found = probing.run(own)
            if own.found.flops is not None or own.refused:
                return own.description
    own = build(reference, keys, context, batch, "cpu", seed)
    own.found = probing.run(own)
    if own.found.flops is None and not own.refused:
        raise ModelError(own.found.reason)
    return own.description


class OwnModel:
    """A model as its user wrote it.

    module: in the mode that it was built in, for training; in eval mode for inference. blocks: its
    repeated modules, or []. refused: why it cannot be measured, in one line, or None. parts: path →
    name of what has a range; attentions: paths. takes_tokens: whether we make its batch. attention:
    what it runs in.
    """

    def __init__(
        self,
        reference: Reference,
        keys: dict,
        module: nn.Module,
        fed: inputs.Fed,
        context: int,
        batch: int,
        device: torch.device,
        seed: int,
    ):
        self.reference = reference
        self.keys = keys
        self.module = module
        self.context = context
        self.batch = batch
        self.device = device
        self.seed = seed
        self.takes_tokens = fed.vocab_size is not None
        self.attention: AbstractContextManager = nullcontext()
        self._fed: inputs.Fed = fed
        self._modes: dict[nn.Module, bool] = {}
        self._is_training = True
        self.refused = structure.refused(module)
        self.found_blocks = structure.blocks_of(module)
        self.has_own_ranges = naming.names_its_own(module)
        parts = structure.parts_of(module, self.found_blocks)
        self.attentions = [path for path, name in parts.items() if name == "attention"]
        self.parts = naming.renamed(
            {} if self.has_own_ranges else parts, module, keys.get(RANGES, {})
        )
        self._names = naming.Names(module, self.parts)
        self.description_of_module = self._described()

    @property
    def blocks(self) -> list[nn.Module]:
        return self.found_blocks.modules if self.found_blocks else []

    def make_batch(self) -> object:
        """A batch on the device, the same for the same seed. Raises ModelError where the user's
        function fails."""
        place = "cpu" if self.device.type == "meta" else self.device
        generator = torch.Generator(place).manual_seed(self.seed)
        with named_errors(self.reference, "make_batch() fails"):
            return self._fed.make(self.batch, self.context, self.device, generator)

    def loss(self, batch: object) -> Tensor:
        """The forward pass with the loss, a scalar. Raises ModelError for a model or a loss that
        cannot be trained."""
        output = self.forward(batch)
        with named_errors(self.reference, "loss fails"):
            loss = self._fed.loss(output, batch)
        if not isinstance(loss, Tensor) or loss.ndim != 0 or not loss.requires_grad:
            raise ModelError(
                f"{self.reference.text}: the loss {_what(loss)}; it has to be a scalar with a"
                " gradient"
            )
        return loss

    def forward(self, batch: object) -> object:
        """The forward pass as it is trained, without what comes after the module."""
        self._train(True)
        with self._running(), named_errors(self.reference, "forward fails"):
            return self._fed.call(self.module, batch, with_loss=True)

    def outputs(self, batch: object) -> object:
        """The forward pass without a loss, in eval mode: no dropout."""
        self._train(False)
        with self._running(), named_errors(self.reference, "forward fails"):
            return self._fed.call(self.module, batch, with_loss=False)

    def _train(self, is_training: bool) -> None:
        """Have all parts in eval mode, or each in the mode that it was built in; nothing is touched
        in between."""
        if is_training == self._is_training:
            return
        if is_training:
            for part, mode in self._modes.items():
                part.training = mode
        else:
            self._modes = {part: part.training for part in self.module.modules()}
            self.module.eval()
        self._is_training = is_training

    @contextmanager
    def _running(self) -> Iterator[None]:
        self._names.follow()
        with self.attention:
            yield

    def without_hooks(self) -> None:
        """From now on no part has a range: hooks would break up what is compiled."""
        self._names = naming.Names(self.module, {})
        self.description_of_module["ranges"]["names"] = []
        self.description_of_module["unknown"].append(
            "ranges inside the model: compiled code has none"
        )

    @cached_property
    def found(self) -> probing.Probe:
        """What a step of this model computes; another one of its kind is run, in shapes alone."""
        own = (self.reference.text, self.keys, self.context, self.batch, "cpu", self.seed)
        devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
        with torch.random.fork_rng(devices):
            return probing.probe(lambda: build(*own))

    @property
    def description(self) -> dict:
        """What was built, how it is fed and what a step computes, ready for JSON."""
        unknown = [*self.description_of_module["unknown"], *flops.unknown(self, self.found)]
        return self.description_of_module | {
            "flops": flops.counted(self, self.found),
            "unknown": unknown,
        }

    def _described(self) -> dict:
        """All of the description that the module itself shows."""
        module = self.module
        blocks = self.found_blocks
        fed, loss = self._fed.told
        return {
            "reference": self.reference.text,
            "keys": self.keys,
            "class": type(module).__name__,
            **structure.sizes(module),
            "tied": structure.tied(module),
            "dtype": structure.dtypes(module),
            "inputs": fed,
            "loss": loss,
            "vocab_size": self._fed.vocab_size,
            "blocks": (
                blocks and {"count": len(blocks), "class": blocks.class_name, "path": blocks.path}
            ),
            "ranges": {
                "by": "own" if self.has_own_ranges or self.keys.get(RANGES) else "hooks",
                "names": list(dict.fromkeys(self.parts.values())),
            },
            "dropout": structure.dropout(module),
            "unknown": self._unknown(),
        }

    def _unknown(self) -> list[str]:
        paths = [path for path, _ in self.module.named_modules()]
        lines = [
            f"ranges: no module has a path like {pattern!r}"
            for pattern in self.keys.get(RANGES, {})
            if not fnmatch.filter(paths, pattern)
        ]
        if self.found_blocks is None:
            lines.append(
                "blocks: no list of modules of one class holds half of the parameters beside"
                " embeddings and head"
            )
        if not self.has_own_ranges:
            missing = [name for name in ("attention", "FFN") if name not in self.parts.values()]
            lines += [
                f"range of {name}: no module is called so; name it by the key ranges"
                for name in missing
            ]
        if self._fed.labels == "targets":
            lines.append(
                "inference: without targets forward may compute less, as the last position alone"
            )
        return lines


def _what(loss: object) -> str:
    if not isinstance(loss, Tensor):
        return f"is {type(loss).__name__}"
    if loss.ndim:
        return f"has the shape {tuple(loss.shape)}"
    return "does not require a gradient"
