"""LoRA by hand (Hu et al. 2021) as a step of your own: the model is frozen, and beside each of its
linear layers two narrow ones are trained.

    steps: {lora: {build: models/step_lora.py:build, rank: 8}}
"""

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
    rank: int = 8,
    layers: int = 6,
    width: int = 384,
) -> Step:
    model = GPT(context, layers, width, heads=width // 64, dropout=0.0)
    model.requires_grad_(False)
    for block in model.blocks:
        for part in list(block.modules()):
            for name, child in part.named_children():
                if isinstance(child, nn.Linear):
                    setattr(part, name, LoRA(child, rank))
    model.to(device)
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    batches = random_batches(batch, context, device, seed)

    def run() -> Tensor:
        tokens = batches()
        with phase("forward"):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        with phase("backward"):
            loss.backward()
        with phase("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return Step(run, module=model, optimizer=optimizer, items=(batch * context, "tokens"))


class LoRA(nn.Module):
    """x W + x A B: (..., d_in) -> (..., d_out)."""

    def __init__(self, frozen: nn.Linear, rank: int):
        super().__init__()
        self.frozen = frozen
        self.down = nn.Linear(frozen.in_features, rank, bias=False)
        self.up = nn.Linear(rank, frozen.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.frozen(x) + self.up(self.down(x))
