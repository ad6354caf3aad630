"""Two results folders beside each other: what has become faster or slower, and what changed between them."""
