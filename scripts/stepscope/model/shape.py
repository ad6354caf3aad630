"""The shape of a model: four numbers and a vocabulary size. Standard library only."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class ModelShape:
    """Shape of a decoder-only Transformer; all fields are counts.

    Raises ValueError when a field is not a positive integer, when `d_model` is not divisible by `num_heads`, or when
    the head dimension is odd (rotary embeddings rotate pairs of channels).
    """

    d_model: int
    d_ff: int
    num_layers: int
    num_heads: int
    vocab_size: int = 10_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            # bool is a subclass of int, but `num_layers=True` is a mistake.
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{field.name} must be a positive integer, not {value!r}")
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model = {self.d_model} is not divisible by num_heads = {self.num_heads}")
        if self.d_head % 2:
            raise ValueError(
                f"head dimension d_model / num_heads = {self.d_model} / {self.num_heads} = {self.d_head} must be even"
            )

    @classmethod
    def of(cls, spec: dict) -> "ModelShape":
        """The shape that a cell's spec names."""
        return cls(**{field.name: spec[field.name] for field in fields(cls)})

    @property
    def d_head(self) -> int:
        """Channels of one attention head."""
        return self.d_model // self.num_heads

    @property
    def parameters(self) -> int:
        """Exact number of trainable parameters.

        Token embedding and untied head; in each layer Q, K, V and output projections, the three matrices of SwiGLU and
        two RMSNorm gains; the gain of the final RMSNorm. No layer has a bias.
        """
        embedding_and_head = 2 * self.vocab_size * self.d_model
        layer = 4 * self.d_model**2 + 3 * self.d_model * self.d_ff + 2 * self.d_model
        return embedding_and_head + self.num_layers * layer + self.d_model
