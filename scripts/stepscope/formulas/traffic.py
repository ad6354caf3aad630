"""Bytes that AdamW moves between the GPU and its memory for each parameter. Standard library
only."""

# It reads a parameter, its gradient and two moments, and writes all of these but the gradient; 4
# bytes each.
OPTIMIZER_BYTES = 4 * 4 + 3 * 4
# Our AdamW runs one operation after the other on whole tensors (stepscope.model.optimizers.own). In
# numbers read and written: lerp 2 + 1, times b2 1 + 1, addcmul 2 + 1, square root 1 + 1, + epsilon
# 1 + 1, decay 1 + 1, addcdiv 3 + 1.
WRITTEN_OUT_BYTES = 4 * 18
