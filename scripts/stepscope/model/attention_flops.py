"""Floating-point operations of attention by itself. Standard library only."""

BACKWARD = 2.5  # backward makes the scores again, and four more products of the size of forward's two


def operations(batch: int, heads: int, length: int, d_head: int, is_causal: bool, direction: str) -> float:
    """Operations of one pass, "forward" or "backward", as FlashAttention-2 counts them (Dao 2023, section 4.1).

    Forward: Q K^T and the product with V, 2 batch heads length^2 d_head each; half of it where the mask hides half.
    """
    forward = 4 * batch * heads * length**2 * d_head / (2 if is_causal else 1)
    return forward * (BACKWARD if direction == "backward" else 1)
