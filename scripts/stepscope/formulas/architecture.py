"""Shapes of models of others, and in what their parts differ from this project's. Standard library
only."""

from dataclasses import dataclass

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

    Raises ValueError when a count is not positive, or num_heads not divisible by key_value_heads.
    """

    head_width: int = 0
    tables: int = 2
    ffn_matrices: int = 3
    norm_numbers: int = 1
    positions: int = 0
    has_biases: int = 0

    def __post_init__(self) -> None:
        for name in ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}: at least 1 is wanted")
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
