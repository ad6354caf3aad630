"""The report on attention by itself; its section module puts the parts together."""
