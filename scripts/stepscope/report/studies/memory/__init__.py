"""The report on what fills the memory; its section module puts the parts together."""
