"""Shapes of models of others, and in what their parts differ from this project's. Standard library
only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepscope.formulas.options import TERMS
from stepscope.model.shape import ModelShape

# Of this project's model: embedding and head are two tables; a gated feed-forward network has three
# matrices; RMSNorm has one number for each channel (LayerNorm two); rotations need no parameters.
PARTS = {
    "tables": 2,
    "matrices of FFN": 3,
    "numbers of a norm": 1,
    "positions": 0,
    "has biases": 0,
}


@dataclass(frozen=True)
class Architecture(ModelShape):
    """head_width: channels of a head, where it is not d_model / num_heads; tables: 1 where head and
    embedding share their weights; positions: learned ones; has_biases: 1 where linear layers have
    them.

    Raises ValueError for a number out of its bounds, when num_heads is not divisible by
    key_value_heads, and without a head_width when d_model is not by num_heads.
    """

    head_width: int = 0
    tables: int = 2
    ffn_matrices: int = 3
    norm_numbers: int = 1
    positions: int = 0
    has_biases: int = 0

    def __post_init__(self) -> None:
        require(vars(self))
        if not self.head_width and self.d_model % self.num_heads:
            raise ValueError(
                f"d_model = {self.d_model} is not divisible by num_heads = {self.num_heads}"
            )
        if self.num_heads % self.kv_heads:
            raise ValueError(
                f"num_heads = {self.num_heads} is not divisible by key_value_heads ="
                f" {self.key_value_heads}"
            )

    @property
    def d_head(self) -> int:
        """Channels of one attention head."""
        return self.head_width or self.d_model // self.num_heads

    @property
    def parts(self) -> dict[str, int]:
        """As PARTS."""
        return {
            "tables": self.tables,
            "matrices of FFN": self.ffn_matrices,
            "numbers of a norm": self.norm_numbers,
            "positions": self.positions,
            "has biases": self.has_biases,
        }


def require(numbers: Mapping[str, Any]) -> None:
    """Raises ValueError for the first of them that is out of the table's bounds."""
    for name, (least, most) in TERMS["bounds"].items():
        if not least <= numbers.get(name, least) <= most:
            raise ValueError(f"{name} {numbers[name]}: a number from {least} to {most} is wanted")
