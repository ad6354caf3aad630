"""Our own Transformer, and a batch of random tokens."""

from torch import Tensor, nn

from stepscope.axes import option
from stepscope.measure import memory, models
from stepscope.model.chosen import load
from stepscope.model.loss import cross_entropy
from stepscope.model.ranges import named
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model, random_batch


class Model:
    """The Transformer of a spec's shape, with the attention that it names."""

    def __init__(self, spec: dict):
        device, shape = spec["device"], ModelShape.of(spec)
        memory.require_room(shape, device)
        self.module = build_model(
            shape, spec["context"], option(spec, "attention"), device, spec["seed"]
        )
        self._batch = random_batch(
            spec["vocab_size"], spec["batch"], spec["context"], device, spec["seed"]
        )
        self.choose(slice(None))
        if spec["precision"] == "fp8":
            fp8 = load("precision", "fp8")
            if reason := fp8.unsupported(shape, self._tokens.numel()):
                raise models.Unsupported(reason)
            fp8.convert(self.module.blocks)

    def choose(self, sequences: slice) -> None:
        """Go on with these sequences of the batch."""
        self._tokens, self._targets = (part[sequences] for part in self._batch)

    @property
    def blocks(self) -> nn.ModuleList:
        """The blocks as they are now; some may be grouped."""
        return self.module.blocks

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """(name, parameter)."""
        return list(self.module.named_parameters())

    def outputs(self) -> Tensor:
        """(batch, context, vocab_size) logits."""
        return self.module(self._tokens)

    def loss(self) -> Tensor:
        """The forward pass with the loss, a scalar."""
        logits = self.module(self._tokens)
        with named("loss"):
            return cross_entropy(logits, self._targets)


def preload(spec: dict) -> None:
    """Nothing more than this module."""
