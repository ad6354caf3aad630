"""PyTorch's fused AdamW: the whole update of many parameters in one kernel."""

import functools

import torch

from stepscope.model.about import Optimizer

ABOUT = Optimizer(
    label="fused AdamW",
    title="Fuse AdamW",
    mechanism="One pass updates each number, instead of one operation after another.",
    recipe="`torch.optim.AdamW(parameters, fused=True)`",
    takes_away="optimizer",
    state=2,
    workspace="",
)
make = functools.partial(torch.optim.AdamW, fused=True)
