"""The report on warm-up and the first step; its section module puts the parts together."""
