"""A model of one's own, as stepscope.model.own builds it, with the batch that it is given."""

import torch
from torch import Tensor, nn

from stepscope.axes import PLAIN_STEP, option
from stepscope.config.own_models import keys_of
from stepscope.model.formats import FORMATS
from stepscope.model.own import adapting, assembled

from . import NamedTensors, Unsupported, named_parameters


class Model:
    """What a spec's `model` builds, with the options that the spec names."""

    def __init__(self, spec: dict):
        precision = spec["precision"]
        if outside := FORMATS[precision].outside:
            raise Unsupported(
                f"{precision} is there for the sizes of this project alone; give a model of one's"
                f" own {outside}"
            )
        if option(spec, "loss") != PLAIN_STEP["loss"]:
            raise Unsupported("a model of one's own has the loss that it was written with")
        place = spec["context"], spec["batch"], spec["device"], spec["seed"]
        self._own = assembled.build(spec["model"], keys_of(spec), *place)
        adapting.adapt(self._own, spec)
        self.module = self._own.module
        types = {each.dtype for each in self.module.parameters()}
        if FORMATS[precision].is_autocast and types == {torch.float64}:
            raise Unsupported(f"autocast leaves a model in float64 as it is: {precision} is none")
        self._batch = self._own.make_batch()

    @property
    def blocks(self) -> list[nn.Module]:
        """The modules that repeat; none if there are none."""
        return self._own.blocks

    def named_parameters(self) -> NamedTensors:
        """(name, parameter), whatever holds the blocks."""
        blocks = self._own.found_blocks
        return named_parameters(self.module, blocks.path if blocks else None)

    def outputs(self) -> object:
        """The forward pass without the loss."""
        return self._own.outputs(self._batch)

    def loss(self) -> Tensor:
        """The forward pass with the loss, a scalar."""
        return self._own.loss(self._batch)
