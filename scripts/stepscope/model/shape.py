"""The shape of a model: four numbers, a vocabulary size, and what its attention leaves out.
Standard library only."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class ModelShape:
    """Shape of a decoder-only Transformer; all fields are counts.

    key_value_heads: heads of K and V, each of which several heads of Q share (grouped queries,
    Ainslie et al. 2023); 0: as many as heads. window: positions that one sees at most, itself and
    those just before it (sliding window, Beltagy et al. 2020, section 3.1); 0: all before it.

    Raises ValueError when a field is not a positive integer (of these two also 0), when `d_model`
    is not divisible by `num_heads` or `num_heads` not by `key_value_heads`, or when the head
    dimension is odd (rotary embeddings rotate pairs of channels).
    """

    d_model: int
    d_ff: int
    num_layers: int
    num_heads: int
    vocab_size: int = 10_000
    key_value_heads: int = 0
    window: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in ("key_value_heads", "window") else 1
            # bool is a subclass of int, but `num_layers=True` is a mistake.
            if type(value) is not int or value < least:
                raise ValueError(
                    f"{field.name} must be a positive integer{' or 0' * (not least)}, not {value!r}"
                )
        if self.d_model % self.num_heads:
            raise ValueError(
                f"d_model = {self.d_model} is not divisible by num_heads = {self.num_heads}"
            )
        if self.d_head % 2:
            raise ValueError(
                f"head dimension d_model / num_heads = {self.d_model} / {self.num_heads} ="
                f" {self.d_head} must be even"
            )
        if self.num_heads % (self.key_value_heads or self.num_heads):
            raise ValueError(
                f"num_heads = {self.num_heads} is not divisible by key_value_heads ="
                f" {self.key_value_heads}"
            )

    @classmethod
    def of(cls, spec: dict) -> "ModelShape":
        """The shape that a cell's spec names."""
        return cls(**{field.name: spec[field.name] for field in fields(cls) if field.name in spec})

    @property
    def d_head(self) -> int:
        """Channels of one attention head."""
        return self.d_model // self.num_heads

    @property
    def kv_heads(self) -> int:
        """Heads of K and of V."""
        return self.key_value_heads or self.num_heads

    @property
    def qkv_width(self) -> int:
        """Channels of Q, K and V together."""
        return self.d_model + 2 * self.kv_heads * self.d_head

    def keys_seen(self, context: int) -> int:
        """Keys that a query sees at most in a sequence of `context` tokens."""
        return min(self.window or context, context)

    @property
    def parameters(self) -> int:
        """Exact number of trainable parameters.

        Token embedding and untied head; in each layer Q, K, V and output projections, the three
        matrices of SwiGLU and two RMSNorm gains; the gain of the final RMSNorm. No layer has a
        bias.
        """
        embedding_and_head = 2 * self.vocab_size * self.d_model
        layer = (
            self.d_model * (self.qkv_width + self.d_model)
            + 3 * self.d_model * self.d_ff
            + 2 * self.d_model
        )
        return embedding_and_head + self.num_layers * layer + self.d_model
