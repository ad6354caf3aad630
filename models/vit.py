"""A small vision Transformer, as an example of a model whose inputs are no tokens: it brings its
batch and its loss.

    models: {vit: {build: models/vit.py:build, layers: 6}}

The context counts for nothing here: an image has as many patches as it has.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

IMAGE, PATCH, CLASSES = 32, 4, 10  # pixels, pixels, labels


def build(context: int, layers: int = 6, width: int = 192, heads: int = 3):
    """(module, make_batch, loss), as the configuration's `build` may return."""
    return ViT(layers, width, heads), make_batch, loss


def make_batch(batch: int, context: int, device, generator: torch.Generator) -> dict[str, Tensor]:
    """A dict: its entries are passed to forward() by name."""
    images = torch.randn(batch, 3, IMAGE, IMAGE, device=device, generator=generator)
    return {
        "images": images,
        "labels": torch.randint(CLASSES, (batch,), device=device, generator=generator),
    }


def loss(outputs: Tensor, batch: dict[str, Tensor]) -> Tensor:
    return F.cross_entropy(outputs, batch["labels"])


class ViT(nn.Module):
    """(batch, 3, 32, 32) images -> (batch, 10) logits. Labels are for the loss alone."""

    def __init__(self, layers: int, width: int, heads: int):
        super().__init__()
        self.patches = nn.Conv2d(3, width, kernel_size=PATCH, stride=PATCH)
        self.positions = nn.Parameter(torch.zeros(1, (IMAGE // PATCH) ** 2, width))
        layer = nn.TransformerEncoderLayer(
            width,
            heads,
            4 * width,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(
            layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, CLASSES)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.encoder(x).mean(dim=1))
