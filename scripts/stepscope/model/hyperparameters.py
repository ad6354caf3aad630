"""AdamW's settings: PyTorch's defaults, for every implementation. A step's time does not depend on their values."""

LEARNING_RATE = 1e-3
BETAS = (0.9, 0.999)
EPSILON = 1e-8
WEIGHT_DECAY = 0.01
