"""Bytes that a phase must move between the GPU and its memory, at the least, in closed form. Standard library only.

Counted is what has to be in memory between kernels that lie far apart: each tensor once where it is written, once where
it is read. Everything between neighbouring kernels is taken to stay in the caches; so is the 16-bit copy of a weight
that autocast makes, until the product beside it has read it. What really moves is more. The bound holds where these
tensors are larger than the caches. An arithmetic intensity made with it is an upper bound.

Which tensors there are follows `stepscope.model.footprint`, for the model as written: not compiled, no checkpoints.
"""

from stepscope.axes import PRECISIONS
from stepscope.model import footprint
from stepscope.model.footprint import DTYPE_BYTES, Setup, total

# AdamW reads a parameter, its gradient and two moments, and writes all of these but the gradient; 4 bytes each.
OPTIMIZER_BYTES = 4 * 4 + 3 * 4
# Our AdamW runs one operation after the other on whole tensors (stepscope.model.optimizers.own). In numbers read and
# written: lerp 2 + 1, times b2 1 + 1, addcmul 2 + 1, square root 1 + 1, + epsilon 1 + 1, decay 1 + 1, addcdiv 3 + 1.
WRITTEN_OUT_BYTES = 4 * 18
# Of one parameter in AdamW (Loshchilov and Hutter 2019, algorithm 2): first moment b1 m + (1 - b1) g: 3, second moment
# b2 v + (1 - b2) g g: 4, square root, + epsilon: 2, m / that, times the rate, subtracted: 3, weight decay: 1. The bias
# corrections are numbers, not tensors.
OPTIMIZER_FLOPS = 3 + 4 + 2 + 3 + 1
_TENSORS = {"forward": 4, "backward": 8}


def saved_activations(setup: Setup) -> int:
    """Bytes that the forward pass writes for the backward pass, which reads them."""
    return total(footprint.saved_by_block(setup, setup.shape.num_layers) + footprint.saved_outside(setup))


def forward_bytes(setup: Setup) -> int:
    """Parameters read once, under autocast the 16-bit copies written, and the saved activations written.

    The embedding is a look-up that reads a few rows, and is left out.
    """
    return 4 * _read_parameters(setup) + total(footprint.all_cast_weights(setup)) + saved_activations(setup)


def backward_bytes(setup: Setup) -> int:
    """Saved activations and parameters read once, of matrices the type that is multiplied; all gradients written."""
    copies = footprint.all_cast_weights(setup)
    cast_parameters = total(copies) // DTYPE_BYTES[setup.low] if copies else 0
    parameters = 4 * (_read_parameters(setup) - cast_parameters) + total(copies)
    return saved_activations(setup) + parameters + total([footprint.gradients(setup)])


def optimizer_bytes(setup: Setup) -> int:
    """AdamW in fp32: 28 bytes a parameter."""
    return OPTIMIZER_BYTES * setup.shape.parameters


def optimizer_flops(setup: Setup) -> int:
    """Elementwise operations of AdamW; a multiplication, an addition, a division or a square root is one."""
    return OPTIMIZER_FLOPS * setup.shape.parameters


def attention_bytes(
    batch: int,
    heads: int,
    queries: int,
    d_head: int,
    precision: str,
    direction: str,
    kv_heads: int | None = None,
    keys: int | None = None,
) -> int:
    """Attention by itself. Forward: Q, K and V read, O written. Backward: also O and dO read, dQ, dK and dV written.

    kv_heads and keys: of K and V, as Q has them where None.
    """
    rows = heads * queries + (kv_heads or heads) * (keys or queries)  # of Q and O, and of K and V, which are as many
    return _TENSORS[direction] // 2 * batch * rows * d_head * PRECISIONS[precision].bytes


def _read_parameters(setup: Setup) -> int:
    """Parameters that are multiplied by: all but the embedding."""
    return setup.shape.parameters - setup.shape.vocab_size * setup.shape.d_model
