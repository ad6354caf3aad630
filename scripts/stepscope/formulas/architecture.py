"""Shapes of models of others, and in what their parts differ from this project's. Standard library
only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepscope.model.shape import ModelShape

from .options import TERMS


@dataclass(frozen=True)
class Architecture(ModelShape):
    """What it has besides is by default as in this project's model.

    head_width: channels of a head, where it is not d_model / num_heads; tables: 1 where head and
    embedding share their weights; ffn_matrices: 2 where no gate is; norm_numbers: of a channel, 2
    of LayerNorm; head_norms: 1 where each head of Q and K has a norm; positions: learned ones;
    has_biases: 1 where linear layers have them.

    Raises ValueError for a number out of its bounds.
    """

    head_width: int = 0
    tables: int = 2
    ffn_matrices: int = 3
    norm_numbers: int = 1
    head_norms: int = 0
    positions: int = 0
    has_biases: int = 0

    def __post_init__(self) -> None:
        require(vars(self))

    @property
    def d_head(self) -> int:
        """Channels of one attention head."""
        return self.head_width or self.d_model // self.num_heads


def require(numbers: Mapping[str, Any]) -> None:
    """Raises ValueError for the first of them that is out of the table's bounds."""
    for name, (least, most) in TERMS["bounds"].items():
        if not least <= numbers.get(name, least) <= most:
            raise ValueError(f"{name} {numbers[name]}: a number from {least} to {most} is wanted")
