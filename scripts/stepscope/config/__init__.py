"""From the configuration to the grid of cells, and what makes a cell stale. Standard library only."""
