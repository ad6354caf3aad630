"""Cross-entropy as torch.compile fuses it: the logits are read twice and their gradient is written
once."""

from torch import Tensor

from stepscope.model.about import Loss
from stepscope.model.compilation import compiled
from stepscope.model.ranges import named
from stepscope.model.transformer import TransformerLM

from .torch import cross_entropy

ABOUT = Loss(
    label="compiled cross-entropy",
    title="Compile the loss",
    mechanism="Casts, exponentials and sums become one kernel each way.",
    recipe="`torch.compile(F.cross_entropy)(logits.flatten(0, -2), targets.flatten())`",
    keeps="logits",
    is_fused=True,
)
IS_COMPILED = True


def loss(model: TransformerLM, tokens: Tensor, targets: Tensor) -> Tensor:
    """See the package."""
    logits = model(tokens)
    with named("loss"):
        return compiled(cross_entropy)(logits, targets)
