"""From a reference to a training step of one's own: the function of a user's file is called with
what it takes."""

import torch
from torch import nn

from stepscope.step import Step

from . import structure
from .loading import called, function_of
from .reference import ModelError, Reference, parse


def build(reference: str, keys: dict, given: dict) -> Step:
    """The step that the function of a reference makes of its keys, and of what it takes of `given`:
    context, batch, device (a name; it gets a torch.device), seed.

    Seeds PyTorch's global generators. Raises ModelError, in one line, for what is no step; running
    out of memory passes through as it is.
    """
    parsed = parse(reference, "step")
    function = function_of(parsed)
    torch.manual_seed(given["seed"])
    built = called(function, parsed, keys, **given | {"device": torch.device(given["device"])})
    if not isinstance(built, Step):
        raise ModelError(
            f"{reference}: {parsed.function}() returns {type(built).__name__}; return"
            " stepscope.Step(run, ...)"
        )
    return built


def parameters(step: Step) -> nn.Module:
    """What holds the step's parameters: its module, else those that its optimizers have."""
    if step.module is not None:
        return step.module
    groups = [group for each in step.optimizers for group in getattr(each, "param_groups", [])]
    held = [each for group in groups for each in group["params"]]
    return nn.ParameterList(each for each in held if isinstance(each, nn.Parameter))


def described(reference: Reference, step: Step) -> dict:
    """What was built, ready for JSON: as for a model, without what is ours to choose."""
    module = parameters(step)
    found = structure.described(module, structure.blocks_of(module))
    items, item = step.items or (None, None)
    return found | {
        "reference": reference.text,
        "class": found["class"] if step.module is not None else "",
        "optimizer": " + ".join(map(_told, step.optimizers)),
        "items": items,
        "item": item,
        "flops": {"given": step.flop} if step.flop else None,
        "unknown": [],
    }


def _told(optimizer: object) -> str:
    """An optimizer's class, and how it is run where that is chosen."""
    defaults = getattr(optimizer, "defaults", {})
    how = [name for name in ("fused", "foreach", "capturable") if defaults.get(name)]
    name = type(optimizer).__name__
    return f"{name} ({', '.join(how)})" if how else name
