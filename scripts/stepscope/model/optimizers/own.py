"""AdamW written out: one parameter after the other, a few in-place operations each."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from stepscope.model.about import Optimizer

ABOUT = Optimizer(label="AdamW written out", state=2, workspace="largest parameter")


@dataclass(eq=False)
class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2).

    Not a torch.optim.Optimizer: making one imports torch's compiler, which takes as long as
    importing torch. Keeps two moments of each parameter's shape and dtype, made in the first step.
    A parameter without gradient is skipped, and its step count with it.
    """

    parameters: Iterable[Tensor]
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        self.parameters = list(self.parameters)
        self._moments: dict[Tensor, tuple[Tensor, Tensor]] = {}
        # Counts live on the host: corrections computed from them are plain numbers, nothing waits
        # for the device.
        self._steps: dict[Tensor, int] = {}

    def zero_grad(self) -> None:
        """Drop every parameter's gradient."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for parameter in self.parameters:
            if parameter.grad is not None:
                self._update(parameter, parameter.grad)

    def _update(self, parameter: Tensor, gradient: Tensor) -> None:
        if parameter not in self._moments:
            self._moments[parameter] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        first_moment, second_moment = self._moments[parameter]
        step = self._steps[parameter] = self._steps.get(parameter, 0) + 1
        beta1, beta2 = self.betas

        first_moment.lerp_(gradient, 1 - beta1)
        second_moment.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)

        # lr * m_hat / (sqrt(v_hat) + eps), with both bias corrections drawn out of the tensors into
        # two numbers (Kingma and Ba 2015, end of section 2).
        correction1 = 1 - beta1**step
        correction2 = math.sqrt(1 - beta2**step)
        denominator = second_moment.sqrt().add_(self.eps * correction2)
        parameter.mul_(1 - self.lr * self.weight_decay)
        parameter.addcdiv_(first_moment, denominator, value=-self.lr * correction2 / correction1)


make = AdamW
