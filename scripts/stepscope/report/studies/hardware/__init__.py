"""The report on machines beside each other; its section module puts the parts together."""
