"""An optimizer in a file, Muon (Jordan et al. 2024), beside AdamW, as steps of your own.

steps:
  adamw: {build: models/step_muon.py:build, optimizer: adamw}
  muon:  {build: models/step_muon.py:build, optimizer: muon}
compare: [[adamw, muon]]
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from gpt import GPT
from step_plain import random_batches
from stepscope import Step, phase
from torch import Tensor, nn


def build(
    context: int,
    batch: int,
    device: torch.device,
    seed: int,
    optimizer: str = "muon",
    layers: int = 6,
    width: int = 384,
) -> Step:
    model = GPT(context, layers, width, heads=width // 64, dropout=0.0).to(device)
    optimizers = chosen(optimizer, model)
    batches = random_batches(batch, context, device, seed)

    def run() -> Tensor:
        tokens = batches()
        with phase("forward"):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        with phase("backward"):
            loss.backward()
        with phase("optimizer"):
            for each in optimizers:
                each.step()
            model.zero_grad()
        return loss.detach()

    return Step(run, module=model, optimizer=optimizers, items=(batch * context, "tokens"))


def chosen(name: str, model: GPT) -> list[torch.optim.Optimizer]:
    """AdamW of everything; or Muon of the blocks' matrices, and AdamW of the rest."""
    if name == "adamw":
        return [torch.optim.AdamW(model.parameters())]
    matrices = [each for each in model.blocks.parameters() if each.ndim == 2]
    known = set(matrices)
    others = [each for each in model.parameters() if each not in known]
    return [Muon(matrices), torch.optim.AdamW(others)]


class Muon(torch.optim.Optimizer):
    """Each matrix is updated by its momentum, made nearly orthogonal."""

    def __init__(self, matrices: Iterable[nn.Parameter], lr: float = 0.02, momentum: float = 0.95):
        super().__init__(matrices, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for matrix in group["params"]:
                state = self.state[matrix]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(matrix)
                momentum = state["momentum"]
                momentum.mul_(group["momentum"]).add_(matrix.grad)
                update = orthogonal(matrix.grad + group["momentum"] * momentum)
                scale = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
                matrix.add_(update, alpha=-group["lr"] * scale)


def orthogonal(matrix: Tensor, rounds: int = 5) -> Tensor:
    """The nearest matrix with singular values near 1, (rows, columns), by Newton and Schulz's
    iteration of degree 5."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix.bfloat16()
    is_tall = x.shape[0] > x.shape[1]
    x = x.T if is_tall else x
    x = x / (x.norm() + 1e-7)
    for _ in range(rounds):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return (x.T if is_tall else x).to(matrix.dtype)
