"""People's own models: what was built, and what was found out of it."""
