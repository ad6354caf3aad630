"""Attention implementations, one module each, loaded by name (see `stepscope.model.chosen`)."""
