"""Floating-point operations of a training step, in closed form. Standard library only.

Counted are the matrix products, 2 m n k operations for (m, k) x (k, n), as in Kaplan et al. 2020
(section 2.1) and in appendix B of PaLM (Chowdhery et al. 2022); normalisations, softmax,
activations, the loss and the optimizer's elementwise work are not. Attention is counted in full, as
the naive code computes it: it is not halved for the causal mask, although a fused kernel may skip
the masked half. In a model with a sliding window each query counts for as many keys as the window
has, although naive attention computes all. The embedding is a look-up and counts nothing.

Of attention by itself the pairs of a query and a key that it sees are counted.
"""

from stepscope.axes import CAUSAL, FULL
from stepscope.model.shape import ModelShape

from .footprint import all_sizes

COMPONENTS = ("qkv", "scores", "attention x V", "output", "feed-forward", "head")

# over forward: it makes the scores again, and four more products of the size of forward's two
ATTENTION_BACKWARD = 2.5


def forward_flops_by_component(shape: ModelShape, batch: int, context: int) -> dict[str, int]:
    """Operations of one forward pass over (batch, context) tokens, by component, summed over all
    layers."""
    sizes = all_sizes(shape, batch, context)
    return {name: sizes[name] for name in COMPONENTS}


def step_flops(shape: ModelShape, batch: int, context: int) -> int:
    """Operations of one training step: forward and backward, which has twice as many, since each
    product C = A B has two gradients, each a product of the same size. The optimizer has no matrix
    products and adds none."""
    return 3 * sum(forward_flops_by_component(shape, batch, context).values())


def model_flops(shape: ModelShape, batch: int, context: int, is_causal_half: bool = False) -> int:
    """What the field divides by time and peak for its model FLOPs utilisation: 6 N + 12 L d T a
    token (PaLM, Chowdhery et al. 2022, appendix B), d the width of Q.

    N: all parameters but the embedding, which is looked up; norms' gains count, though they
    multiply no matrix. is_causal_half: of the scores half, which a causal mask leaves. Nothing is
    counted again for recomputation.
    """
    multiplied = shape.parameters - shape.vocab_size * shape.d_model
    attention = 12 * shape.num_layers * shape.d_model * shape.keys_seen(context)
    return batch * context * (6 * multiplied + attention // (2 if is_causal_half else 1))


def linear_step_flops(shape: ModelShape, batch: int, context: int) -> tuple[int, int]:
    """Of them those of the linear layers: of the blocks, and of the head."""
    parts = forward_flops_by_component(shape, batch, context)
    return 3 * sum(parts[name] for name in ("qkv", "output", "feed-forward")), 3 * parts["head"]


def attention_flops(
    batch: int,
    heads: int,
    length: int,
    d_head: int,
    mask: str,
    direction: str,
    window: int | None = None,
) -> float:
    """Operations of attention by itself in a pass, "forward" or "backward" (Dao, FlashAttention-2,
    2023, section 4.1).

    mask, window: as in visible_pairs(). Forward: Q K^T and the product with V, 2 batch heads pairs
    d_head each. Of a plain causal mask the pairs are half of length x length, as there and in
    whatever is compared with it; of all else they are counted one by one. Heads are those of Q:
    fewer heads of K and V save no operation.
    """
    is_plain = mask == CAUSAL and not window
    pairs = length**2 / 2 if is_plain else visible_pairs(length, mask, window)
    forward = float(4 * batch * heads * pairs * d_head)
    return forward * (ATTENTION_BACKWARD if direction == "backward" else 1)


def visible_pairs(length: int, mask: str, window: int | None = None) -> int:
    """How many pairs of a query and a key that it sees there are, as many keys as queries.

    mask: "full", or "causal": query i sees keys 0 to i. window: keys that a query sees at most, the
    last ones up to its own position.
    """
    if mask == FULL:
        return length**2
    most = min(window or length, length)
    # The first queries see 1, 2, ... keys, until it is the most.
    return most * (most + 1) // 2 + (length - most) * most
