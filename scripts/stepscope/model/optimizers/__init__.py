"""AdamW implementations, one module each, loaded by name (see `stepscope.model.chosen`).

Their settings are PyTorch's defaults. A step's time does not depend on the values.
"""

LEARNING_RATE = 1e-3
BETAS = (0.9, 0.999)
EPSILON = 1e-8
WEIGHT_DECAY = 0.01
