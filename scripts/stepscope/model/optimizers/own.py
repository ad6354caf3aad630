"""AdamW written out: one parameter after the other, a few in-place operations each."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from stepscope.model.hyperparameters import BETAS, EPSILON, LEARNING_RATE, WEIGHT_DECAY


def make(
    parameters: Iterable[Tensor],
    lr: float = LEARNING_RATE,
    betas: tuple[float, float] = BETAS,
    eps: float = EPSILON,
    weight_decay: float = WEIGHT_DECAY,
) -> torch.optim.Optimizer:
    """Our AdamW over `parameters`. Raises ValueError when a setting is out of range."""
    return AdamW(parameters, lr, betas, eps, weight_decay)


class AdamW(torch.optim.Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2).

    Keeps two moments of each parameter's shape and dtype, made in the first step. A parameter without gradient is
    skipped, and its step count with it.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
    ) -> None:
        if not (lr >= 0 and eps >= 0 and weight_decay >= 0):
            raise ValueError(f"lr, eps and weight_decay must not be negative: {lr}, {eps}, {weight_decay}")
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas must lie in [0, 1): {betas}")
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict) -> None:
        state = self.state[parameter]
        if not state:
            # The count lives on the host: corrections computed from it are plain numbers, nothing waits for the device.
            state["step"] = 0
            state["first_moment"] = torch.zeros_like(parameter)
            state["second_moment"] = torch.zeros_like(parameter)
        state["step"] += 1
        first_moment, second_moment = state["first_moment"], state["second_moment"]
        beta1, beta2 = group["betas"]

        first_moment.lerp_(gradient, 1 - beta1)
        second_moment.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)

        # lr * m_hat / (sqrt(v_hat) + eps), with both bias corrections drawn out of the tensors into two numbers
        # (Kingma and Ba 2015, end of section 2).
        correction1 = 1 - beta1 ** state["step"]
        correction2 = math.sqrt(1 - beta2 ** state["step"])
        denominator = second_moment.sqrt().add_(group["eps"] * correction2)
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.addcdiv_(first_moment, denominator, value=-group["lr"] * correction2 / correction1)
