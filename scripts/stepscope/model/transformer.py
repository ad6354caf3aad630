"""A decoder-only, pre-norm Transformer language model.

    tokens -> Embedding -> num_layers x Block -> RMSNorm -> Linear -> logits
    Block: x + attention(RMSNorm(x)), then x + SwiGLU(RMSNorm(x))

Linear layers have no bias, positions enter through rotary embeddings, and the head is not tied to
the embedding, as in LLaMA (Touvron et al. 2023). Heads of K and V may be fewer than of Q, and a
position may see but a window of those before it. Parameters are created on torch's default device,
in its default type (fp32); lower precision is the business of `torch.autocast`. Nothing in the
forward pass makes the host wait for the device.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from .chosen import load
from .ranges import named
from .shape import ModelShape

Device = torch.device | str
Attention = Callable[..., Tensor]  # see stepscope.model.attention


def build_model(
    shape: ModelShape, context: int, attention: str, device: Device, seed: int
) -> "TransformerLM":
    """A model with random weights, the same for the same seed, device type and PyTorch version.

    context: longest sequence, tokens. attention: name of an implementation (see
    `stepscope.model.chosen`). Seeds PyTorch's global generators. Raises ValueError when there is no
    such attention or `context` is not positive.
    """
    torch.manual_seed(seed)
    with torch.device(device):
        return TransformerLM(shape, context, load("attention", attention).attention)


def random_batch(
    vocab_size: int, batch: int, context: int, device: Device, seed: int
) -> tuple[Tensor, Tensor]:
    """Random (tokens, targets), each (batch, context) int64 on `device`; targets are the tokens one
    position later."""
    generator = torch.Generator(device).manual_seed(seed)
    sequences = torch.randint(vocab_size, (batch, context + 1), generator=generator, device=device)
    return sequences[:, :-1].contiguous(), sequences[:, 1:].contiguous()


class TransformerLM(nn.Module):
    """Language model: (batch, length) int64 tokens -> (batch, length, vocab_size) logits, length <=
    context; or without the head (batch, length, d_model), what it would be given."""

    def __init__(self, shape: ModelShape, context: int, attention: Attention) -> None:
        super().__init__()
        if context < 1:
            raise ValueError(f"context must be a positive integer, not {context!r}")
        self.embedding = Embedding(shape.vocab_size, shape.d_model)
        # One table of rotations, shared by all blocks.
        rotary = RotaryEmbedding(context, shape.d_head)
        attention = partial(attention, window=shape.window) if shape.window else attention
        self.blocks = nn.ModuleList(
            Block(shape, rotary, attention) for _ in range(shape.num_layers)
        )
        self.final_norm = RMSNorm(shape.d_model)
        self.head = Linear(shape.d_model, shape.vocab_size)

    def forward(self, tokens: Tensor, with_head: bool = True) -> Tensor:
        with named("embedding"):
            x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        with named("final norm"):
            x = self.final_norm(x)
        if not with_head:
            return x
        with named("LM head"):
            return self.head(x)


class Block(nn.Module):
    """One layer: attention, then feed-forward, each on a normalised copy of the residual stream
    (Xiong et al. 2020).

    (batch, length, d_model) -> (batch, length, d_model).
    """

    def __init__(self, shape: ModelShape, rotary: "RotaryEmbedding", attention: Attention) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(shape.d_model)
        self.attention = CausalSelfAttention(shape, rotary, attention)
        self.feed_forward_norm = RMSNorm(shape.d_model)
        self.feed_forward = SwiGLU(shape.d_model, shape.d_ff)

    def forward(self, x: Tensor) -> Tensor:
        with named("attention norm"):
            normalised = self.attention_norm(x)
        with named("attention"):
            attended = self.attention(normalised)
        x = x + attended
        with named("FFN norm"):
            normalised = self.feed_forward_norm(x)
        with named("FFN"):
            transformed = self.feed_forward(normalised)
        return x + transformed


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, section 3.2) in which no position sees a
    later one.

    Of key_value_heads, each serves as many neighbouring heads of Q (Ainslie et al. 2023).
    (batch, length, d_model) -> (batch, length, d_model).
    """

    def __init__(self, shape: ModelShape, rotary: "RotaryEmbedding", attention: Attention) -> None:
        super().__init__()
        self.num_heads = shape.num_heads
        self.kv_heads = shape.kv_heads
        self.rotary = rotary
        self.attend = attention
        # Q, K and V projections, stacked into one matrix: one product instead of three.
        self.qkv = Linear(shape.d_model, shape.qkv_width)
        self.output = Linear(shape.d_model, shape.d_model)

    def forward(self, x: Tensor) -> Tensor:
        with named("QKV projection"):
            q, k, v = self._projected(x)
        with named("RoPE(Q)"):
            q = self.rotary(q)
        with named("RoPE(K)"):
            k = self.rotary(k)
        q, k, v = (
            rearrange(each, "batch length heads d_head -> batch heads length d_head")
            for each in (q, k, v)
        )
        attended = self.attend(q, k, v, True)
        with named("output projection"):
            return self.output(
                rearrange(attended, "batch heads length d_head -> batch length (heads d_head)")
            )

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Q, K and V, each (batch, length, its heads, d_head)."""
        heads = self.num_heads
        kv_heads = self.kv_heads
        if heads == kv_heads:
            pattern = "batch length (three heads d_head) -> three batch length heads d_head"
            return tuple(rearrange(self.qkv(x), pattern, three=3, heads=heads))
        pattern = "batch length (heads d_head) -> batch length heads d_head"
        return rearrange(self.qkv(x), pattern, heads=heads + 2 * kv_heads).split(
            (heads, kv_heads, kv_heads), dim=2
        )


class SwiGLU(nn.Module):
    """W_down (silu(W_gate x) * W_up x) (Shazeer 2020, equation 6). (..., d_model) -> (...,
    d_model)."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.gate = Linear(d_model, d_ff)
        self.up = Linear(d_model, d_ff)
        self.down = Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class RotaryEmbedding(nn.Module):
    """Rotates channel pairs (2i, 2i + 1) at position p by the angle p * theta^(-2i / d_head)
    (RoFormer, Su et al. 2021, section 3.4.2).

    x: (batch, length, heads, d_head), length <= context. Same shape and dtype out. Raises
    ValueError when x is longer than the tables.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, context: int, d_head: int, theta: float = 10_000.0) -> None:
        super().__init__()
        # Angles reach `context` radians: in float64 they keep their fraction, the tables may then
        # be rounded.
        frequencies = theta ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
        positions = torch.arange(context, dtype=torch.float64)
        angles = rearrange(
            torch.outer(positions, frequencies), "context pairs -> context 1 pairs 1"
        )
        # (a cos - b sin, b cos + a sin) = (a, b) * (cos, cos) + (b, a) * (-sin, sin)
        cos = torch.cat([angles.cos(), angles.cos()], dim=-1)
        sin = torch.cat([-angles.sin(), angles.sin()], dim=-1)
        self.register_buffer("cos", cos.flatten(-2).to(torch.get_default_dtype()), persistent=False)
        self.register_buffer("sin", sin.flatten(-2).to(torch.get_default_dtype()), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        if length > self.cos.shape[0]:
            raise ValueError(
                f"sequence of {length} tokens is longer than the context of {self.cos.shape[0]}"
            )
        pairs = rearrange(x, "... (pairs two) -> ... pairs two", two=2)
        swapped = rearrange(pairs.flip(-1), "... pairs two -> ... (pairs two)")
        # Under autocast x is in low precision: the tables lift the rotation to fp32, and the result
        # is cast back.
        return torch.addcmul(x * self.cos[:length], swapped, self.sin[:length]).to(x.dtype)


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * gain (Zhang and Sennrich 2019, equation 4), in at least fp32
    inside.

    (..., d_model) -> (..., d_model), same dtype.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # fp32 is left alone: no copy
        inverse_rms = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)
        return (wide * inverse_rms * self.gain).to(x.dtype)


class Linear(nn.Module):
    """x W^T, no bias. (..., d_in) -> (..., d_out). product: what multiplies; a precision may put
    its own in place."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.product: Callable[[Tensor, Tensor], Tensor] = F.linear
        self.weight = nn.Parameter(truncated_normal(d_out, d_in))

    def forward(self, x: Tensor) -> Tensor:
        return self.product(x, self.weight)


class Embedding(nn.Module):
    """One row of the table for each token. (...) int64 -> (..., d_model)."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(truncated_normal(vocab_size, d_model))

    def forward(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.weight)


def truncated_normal(rows: int, columns: int) -> Tensor:
    """(rows, columns), normal with std = sqrt(2 / (rows + columns)) (Glorot and Bengio 2010), cut
    at 3 std.

    Drawn by inverting the distribution function, in place and without rejection:
    nn.init.trunc_normal_ redraws until all values fit, which needs memory and synchronises with the
    device after each draw.
    """
    std = math.sqrt(2 / (rows + columns))
    probability_within = math.erf(3 / math.sqrt(2))  # of lying within 3 std
    weight = torch.empty(rows, columns)
    return (
        weight.uniform_(-probability_within, probability_within).erfinv_().mul_(math.sqrt(2) * std)
    )
