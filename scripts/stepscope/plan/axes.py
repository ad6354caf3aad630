"""The values that a cell's axes take, and which of them go without saying."""

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
MODES = ("inference", "forward", "forward-backward", "step")
# How the same model is run, with the value that stands neither in a path nor in a spec.
NEUTRAL = {"mode": "step", "attention": "naive", "compile": "none", "optimizer": "own", "checkpoint": 0, "repeat": 1}
