"""The report on what precision does; its section module puts the parts together."""
