"""The models that training steps are measured of, each with a batch: a module for each kind, loaded
by its name.

So a cell depends only on the one that it runs.

Each has a class `Model`, made from a spec, with the `module`, its `blocks`, `outputs()` and
`loss()` of the batch, and `named_parameters()`. What it makes lies on the spec's device; autocast
and gradients are the caller's business.
"""

import importlib
import re

from torch import Tensor, nn

from stepscope.model.chosen import Unsupported as Unsupported

NamedTensors = list[tuple[str, Tensor]]


def load(spec: dict):
    """The model that a spec names, with its batch.

    Raises Unsupported for options that it cannot have; running out of memory passes through.
    """
    kind = "own" if "model" in spec else "transformer"
    return importlib.import_module(f"{__name__}.{kind}").Model(spec)


def named_parameters(module: nn.Module, blocks: str | None) -> NamedTensors:
    """(name, parameter), tied ones once; below the modules that repeat, which are at the path
    `blocks`, it begins with `blocks.` and the module's number."""
    inside = rf"^{re.escape(blocks)}\.(?=\d+\.)" if blocks else "(?!)"
    named = module.named_parameters()
    return [(re.sub(inside, "blocks.", name), parameter) for name, parameter in named]
