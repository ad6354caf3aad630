"""AdamW implementations, one module each, loaded by name (see `stepscope.model.chosen`).

Each has `make(parameters, **settings)`; settings are named and default as PyTorch's. A step's time
does not depend on their values.
"""
