"""Attention that never stores its weights: FlashAttention-2, forward and backward, in PyTorch and
in Triton."""
