"""From the records of cells to tidy tables."""
