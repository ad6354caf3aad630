"""PyTorch's AdamW with its default implementation: "foreach" (many parameters a kernel) on a
GPU."""

import torch

from stepscope.model.about import Optimizer

# "foreach" runs each operation over all parameters, and keeps the roots of all second moments.
ABOUT = Optimizer(
    label="PyTorch's default AdamW",
    title="PyTorch's own AdamW",
    mechanism="It works on lists of tensors, several in one kernel.",
    recipe="`torch.optim.AdamW(parameters)`",
    state=2,
    workspace="parameters",
)
make = torch.optim.AdamW
