"""A plain training loop as a step of your own.

steps: {plain: {build: models/step_plain.py:build, layers: 6, dtype: bfloat16}}
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from gpt import GPT
from stepscope import Step, phase

VOCABULARY = 10_000


def build(
    context: int,
    batch: int,
    device: torch.device,
    seed: int,
    layers: int = 6,
    width: int = 384,
    dtype: str = "float32",
) -> Step:
    """What the configuration names; further keys of its entry are the further parameters."""
    model = GPT(context, layers, width, heads=width // 64, dropout=0.0)
    model.to(device, getattr(torch, dtype))
    optimizer = torch.optim.AdamW(model.parameters(), fused=device.type == "cuda")
    batches = random_batches(batch, context, device, seed)

    def step_on(tokens: torch.Tensor) -> torch.Tensor:
        with phase("forward"):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        with phase("backward"):
            loss.backward()
        with phase("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    fixed = batches()  # a captured graph reads the same memory each time
    return Step(
        run=lambda: step_on(batches()),
        module=model,
        optimizer=optimizer,
        items=(batch * context, "tokens"),
        graph=lambda: step_on(fixed),
    )


def random_batches(
    batch: int, context: int, device: torch.device, seed: int
) -> Callable[[], torch.Tensor]:
    """A function that gives one after another, (batch, context + 1) tokens; yours reads data."""
    generator = torch.Generator(device).manual_seed(seed)
    size = (batch, context + 1)
    return lambda: torch.randint(VOCABULARY, size, generator=generator, device=device)
