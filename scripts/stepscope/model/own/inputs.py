"""What a user's model is fed with, and its loss: random tokens and cross-entropy, or what the user
brings.

Both kinds have the same methods: make() a batch, call() the module with it, and the loss() of what
that returns.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from stepscope.model.ranges import named

from .reference import ModelError, Reference

LOSSES = {  # in words, by forward's parameter that takes the targets, where it returns its loss
    "labels": "the model's own: .loss of its output, given labels = the same tokens",
    "targets": "the model's own, given targets = the tokens one position later",
    None: "cross-entropy of the logits, in nats, with the tokens one position later",
}


@dataclass(frozen=True)
class Tokens:
    """(batch, context) random tokens in, logits or a loss out.

    told: (what goes in, what the loss is), each in words. labels: name of forward's parameter that
    takes the targets, or None; is_required: whether it cannot do without them; fixed: what is
    always passed.
    """

    reference: Reference
    told: tuple[str, str]
    vocab_size: int
    labels: str | None
    is_required: bool
    fixed: dict

    def make(
        self, batch: int, context: int, device, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Tokens, and as targets the tokens one position later, or the same where the model moves
        them itself."""
        size = (batch, context + 1)
        row = torch.randint(self.vocab_size, size, generator=generator, device=device)
        tokens = row[:, :-1].contiguous()
        later = tokens if self.labels == "labels" else row[:, 1:].contiguous()
        return {"tokens": tokens, "targets": later}

    def call(self, module: nn.Module, batch: Any, with_loss: bool) -> object:
        given = dict(self.fixed)
        if self.labels and (with_loss or self.is_required):
            given[self.labels] = batch["targets"]
        return module(batch["tokens"], **given)

    def loss(self, output: object, batch: Any) -> Tensor:
        found = _own_loss(output) if self.labels else None
        if found is not None:
            return found
        logits = _logits(output)
        targets = batch["targets"]
        wanted = (*targets.shape, self.vocab_size)
        shape = () if logits is None else tuple(logits.shape)
        if logits is None or shape[:-1] != targets.shape or shape[-1] < self.vocab_size:
            raise ModelError(
                f"{self.reference.text}: wrong output: {shape or type(output).__name__} instead of"
                f" logits {wanted} (batch, context, vocabulary); return (module, make_batch, loss)"
                " for anything else"
            )
        with named("loss"):
            return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


@dataclass(frozen=True)
class Brought:
    """The user's own make_batch(batch, context, device, generator) and loss(outputs, batch).

    The batch goes to forward as keywords if it is a dict, as arguments if a tuple or list, else as
    the one argument. Without a loss the output has one, or is one.
    """

    reference: Reference
    told: tuple[str, str]
    make: Callable
    own_loss: Callable | None
    vocab_size: int | None = None
    labels: str | None = None
    is_required: bool = False

    def call(self, module: nn.Module, batch: object, with_loss: bool) -> object:
        if isinstance(batch, dict):
            return module(**batch)
        return module(*batch) if isinstance(batch, (tuple, list)) else module(batch)

    def loss(self, output: object, batch: object) -> Tensor:
        if self.own_loss:
            with named("loss"):
                return self.own_loss(output, batch)
        found = output if isinstance(output, Tensor) else _own_loss(output)
        if found is None:
            raise ModelError(
                f"{self.reference.text}: the output, {type(output).__name__}, has no loss; return "
                "(module, make_batch, loss) with loss(outputs, batch)"
            )
        return found


Fed = Tokens | Brought


def item_of(batch: object, size: tuple[int, int]) -> str:
    """What a batch has of (batch, context) each: `tokens`, where whole numbers are so many; else
    `images` where something has height and width, else `samples`: of these it has `batch`."""
    given = [each for each in tree_leaves(batch) if isinstance(each, Tensor)]
    if any(each.shape == size and not each.is_floating_point() for each in given):
        return "tokens"
    return "images" if any(each.ndim == 4 for each in given) else "samples"


def chosen(reference: Reference, built: object) -> tuple[nn.Module, Fed]:
    """The module and its inputs of what the user's function returned. Raises ModelError for
    anything else."""
    parts = built if isinstance(built, (tuple, list)) else (built, None, None)
    if len(parts) != 3:
        raise ModelError(
            f"{reference.text}: returns {len(parts)} values; return (module, make_batch, loss)"
        )
    module, make_batch, loss = parts
    if not isinstance(module, nn.Module):
        raise ModelError(
            f"{reference.text}: returns {type(module).__name__}; return a module, or (module,"
            " make_batch, loss)"
        )
    if next(module.parameters(), None) is None:
        raise ModelError(
            f"{reference.text}: {type(module).__name__} has no parameters; there is nothing to"
            " train"
        )
    if make_batch is None:
        if loss is not None:
            raise ModelError(f"{reference.text}: returns a loss without make_batch; return both")
        return module, _tokens(reference, module)
    said = "the user's loss(outputs, batch)" if loss else "the model's own: .loss of its output"
    fed = "the user's make_batch(batch, context, device, generator)"
    return module, Brought(reference, (fed, said), make_batch, loss)


def _tokens(reference: Reference, module: nn.Module) -> Tokens:
    """How to give a model tokens, as far as it shows it."""
    size, where = _vocabulary(module)
    if size is None:
        raise ModelError(
            f"{reference.text}: no size of a vocabulary found: neither module.config.vocab_size nor"
            " module.vocab_size nor an nn.Embedding; set one, or return (module, make_batch, loss)"
        )
    written = getattr(module, "_orig_mod", module)  # torch.compile() hides what forward takes
    parameters = inspect.signature(written.forward).parameters
    labels = next((name for name in LOSSES if name in parameters), None)
    fixed = {"use_cache": False} if "use_cache" in parameters else {}
    name = next(iter(parameters), "")
    passed = ", use_cache=False" if fixed else ""
    fed = f"random tokens {name}: (batch, context) int64, below {size:,} ({where}){passed}"
    told = (fed, LOSSES[labels])
    is_required = labels is not None and parameters[labels].default is inspect.Parameter.empty
    return Tokens(reference, told, size, labels, is_required, fixed)


def _vocabulary(module: nn.Module) -> tuple[int | None, str]:
    """(size, where it was found)."""
    holders = {"module.config": getattr(module, "config", None), "module": module}
    for where, holder in holders.items():
        value = getattr(holder, "vocab_size", None)
        if isinstance(value, int) and value > 0:
            return value, f"{where}.vocab_size"
    for name, part in module.named_modules():
        if isinstance(part, nn.Embedding):
            return part.num_embeddings, f"rows of the first nn.Embedding, {name}"
    return None, "nowhere"


def _item(output: object, name: str) -> Any:
    """What an output has under a name; None if nothing."""
    return output.get(name) if isinstance(output, dict) else getattr(output, name, None)


def _own_loss(output: object) -> Tensor | None:
    """The loss that an output carries: its .loss or ["loss"], or the one scalar among its items."""
    found = _item(output, "loss")
    if found is None and isinstance(output, (tuple, list)):
        scalars = [each for each in output if isinstance(each, Tensor) and each.ndim == 0]
        found = scalars[0] if len(scalars) == 1 else None
    return found


def _logits(output: object) -> Tensor | None:
    """The logits of an output: its .logits, itself, or its first item."""
    first = output[:1] if isinstance(output, (tuple, list)) else ()
    for each in (_item(output, "logits"), output, *first):
        if isinstance(each, Tensor) and each.ndim > 1:
            return each
    return None
