"""Gradients of several batches, clipped, under autocast, with a schedule, as a step of your own.

steps: {four: {build: models/step_accumulation.py:build, accumulate: 4}}
"""

import torch
import torch.nn.functional as F
from gpt import GPT
from step_plain import random_batches
from stepscope import Step, phase


def build(
    context: int,
    batch: int,
    device: torch.device,
    seed: int,
    accumulate: int = 4,
    layers: int = 6,
    width: int = 384,
    steps: int = 1000,
) -> Step:
    model = GPT(context, layers, width, heads=width // 64, dropout=0.0).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    batches = random_batches(batch, context, device, seed)

    def run() -> torch.Tensor:
        total = torch.zeros((), device=device)
        for _ in range(accumulate):
            with phase("forward"), torch.autocast(device.type, torch.bfloat16):
                tokens = batches()
                logits = model(tokens[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            with phase("backward"):
                (loss / accumulate).backward()
            total += loss.detach() / accumulate
        with phase("clip"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with phase("optimizer"):
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        return total

    tokens = accumulate * batch * context
    return Step(run, module=model, optimizer=optimizer, items=(tokens, "tokens"))
