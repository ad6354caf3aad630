"""A model of one's own, as stepscope.model.own builds it, with the batch that it is given."""

import re

from torch import Tensor, nn

from stepscope.measure.models import Unsupported
from stepscope.model import own
from stepscope.plan.own_models import keys_of


class Model:
    """What a spec's `model` builds, with the options that the spec names."""

    def __init__(self, spec: dict):
        place = spec["model"], keys_of(spec), spec["context"], spec["batch"]
        self._own = own.build(*place, spec["device"], spec["seed"])
        try:
            own.adapt(self._own, spec)
        except own.Unsupported as error:
            raise Unsupported(str(error)) from None
        self.module = self._own.module
        self._batch = self._own.make_batch()

    @property
    def blocks(self) -> list[nn.Module]:
        """The modules that repeat; none if there are none."""
        return self._own.blocks

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """(name, parameter), tied ones once; a block's begins with `blocks.` and its number, whatever holds it."""
        blocks = self._own.found_blocks
        inside = re.compile(rf"^{re.escape(blocks.path)}\.(?=\d+\.)" if blocks else "(?!)")
        return [(inside.sub("blocks.", name), parameter) for name, parameter in self.module.named_parameters()]

    def outputs(self) -> object:
        """The forward pass without the loss."""
        return self._own.outputs(self._batch)

    def loss(self) -> Tensor:
        """The forward pass with the loss, a scalar."""
        return self._own.loss(self._batch)
