"""Quantities, how they print, the tables they come from, and pages. Knows nothing of
Transformers."""
