"""Our own Transformer, and a batch of random tokens."""

from torch import Tensor, nn

from stepscope.axes import option
from stepscope.measure import memory, models
from stepscope.model.chosen import load
from stepscope.model.formats import FORMATS
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model, random_batch


class Model:
    """The Transformer of a spec's shape, with the attention that it names.

    targets: (batch, context), what the loss compares with.
    """

    def __init__(self, spec: dict):
        device = spec["device"]
        shape = ModelShape.of(spec)
        memory.require_room(shape, device)
        self.module = build_model(
            shape, spec["context"], option(spec, "attention"), device, spec["seed"]
        )
        self._batch = random_batch(
            spec["vocab_size"], spec["batch"], spec["context"], device, spec["seed"]
        )
        self.choose(slice(None))
        if FORMATS[spec["precision"]].outside:
            of_blocks = load("precision", spec["precision"])
            if reason := of_blocks.unsupported(shape, self._tokens.numel()):
                raise models.Unsupported(reason)
            of_blocks.convert(self.module.blocks)
        self._loss = load("loss", option(spec, "loss")).loss

    def choose(self, sequences: slice) -> None:
        """Go on with these sequences of the batch."""
        self._tokens, self.targets = (part[sequences] for part in self._batch)

    def take(self, batch: Tensor) -> None:
        """Go on with these tokens, (batch, context + 1), in the place of those that there are."""
        self._tokens.copy_(batch[:, :-1])
        self.targets.copy_(batch[:, 1:])

    @property
    def blocks(self) -> nn.ModuleList:
        """The blocks as they are now; some may be grouped."""
        return self.module.blocks

    def named_parameters(self) -> models.NamedTensors:
        """(name, parameter)."""
        return list(self.module.named_parameters())

    def outputs(self) -> Tensor:
        """(batch, context, vocab_size) logits."""
        return self.module(self._tokens)

    def loss(self) -> Tensor:
        """The forward pass with the loss, a scalar."""
        return self._loss(self.module, self._tokens, self.targets)
