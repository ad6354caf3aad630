"""Floating-point operations of a training step, in closed form. Standard library only.

Counted are the matrix products, 2 m n k operations for (m, k) x (k, n), as in Kaplan et al. 2020 (section 2.1) and in
appendix B of PaLM (Chowdhery et al. 2022); normalisations, softmax, activations, the loss and the optimizer's
elementwise work are not. Attention is counted in full, as the naive code computes it: it is not halved for the causal
mask, although a fused kernel may skip the masked half. The embedding is a look-up and counts nothing.
"""

from stepscope.model.shape import ModelShape

ATTENTION_BACKWARD = 2.5  # over forward: it makes the scores again, and four more products of the size of forward's two


def forward_flops_by_component(shape: ModelShape, batch: int, context: int) -> dict[str, int]:
    """Operations of one forward pass over (batch, context) tokens, by component, summed over all layers."""
    tokens = batch * context
    d_model, layers = shape.d_model, shape.num_layers
    # Each head multiplies (context, d_head) x (d_head, context); together the heads have d_model channels.
    scores = 2 * batch * context * context * d_model
    return {
        "qkv": layers * 2 * tokens * d_model * 3 * d_model,
        "scores": layers * scores,
        "attention x V": layers * scores,
        "output": layers * 2 * tokens * d_model * d_model,
        "feed-forward": layers * 3 * 2 * tokens * d_model * shape.d_ff,
        "head": 2 * tokens * d_model * shape.vocab_size,
    }


def forward_flops(shape: ModelShape, batch: int, context: int) -> int:
    """Operations of one forward pass over (batch, context) tokens."""
    return sum(forward_flops_by_component(shape, batch, context).values())


def backward_flops(shape: ModelShape, batch: int, context: int) -> int:
    """Operations of one backward pass: twice the forward, since each product C = A B has two gradients, each a product
    of the same size."""
    return 2 * forward_flops(shape, batch, context)


def step_flops(shape: ModelShape, batch: int, context: int) -> int:
    """Operations of one training step: forward and backward. The optimizer has no matrix products and adds none."""
    return forward_flops(shape, batch, context) + backward_flops(shape, batch, context)


def attention_flops(batch: int, heads: int, length: int, d_head: int, is_causal: bool, direction: str) -> float:
    """Operations of attention by itself in one pass, "forward" or "backward", as FlashAttention-2 counts them (Dao
    2023, section 4.1): unlike above, a causal mask halves them.

    Forward: Q K^T and the product with V, 2 batch heads length^2 d_head each; half of it where the mask hides half.
    """
    forward = 4 * batch * heads * length**2 * d_head / (2 if is_causal else 1)
    return forward * (ATTENTION_BACKWARD if direction == "backward" else 1)
