"""What a record says of a model of one's own: a linear stack whose numbers can be worked out by hand.

Two square layers of 8 x 8 without biases, an embedding of 11 x 8 that the head shares: 128 + 88 = 216 parameters. Of
18 tokens (batch 3, context 6) a forward pass multiplies 2 x 18 x (128 + 88) = 7,776, both passes 3 x that = 23,328.
"""

PARAMETERS, FLOPS, TOKENS = 216, 23_328, 18
DESCRIPTION = {
    "reference": "models/mine.py:build",
    "keys": {"layers": 2, "depth": "x"},
    "class": "Stack",
    "parameters": PARAMETERS,
    "trainable_parameters": PARAMETERS - 16,
    "tied": ["head.weight"],
    "buffers_bytes": 40,
    "dtype": "torch.float32",
    "inputs": "token ids (3, 6) of 11, by the first embedding",
    "loss": "cross-entropy of the first output",
    "vocab_size": 11,
    "blocks": {"count": 2, "class": "Linear", "path": "layers"},
    "ranges": {"by": "hooks", "names": ["layers.*", "head"]},
    "dropout": [0.0, 0.1],
    "flops": {"counter": FLOPS, "formula": FLOPS, "disagree": False, "why": ""},
    "unknown": ["heads: no module has them", "a norm"],
}


def spec_of(spec: dict, **more) -> dict:
    """A cell's spec with a model in place of a shape."""
    shape = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")
    own = {name: value for name, value in spec.items() if name not in shape}
    return own | {"model": "models/mine.py:build", "model_keys": '{"depth":"x","layers":2}'} | more
