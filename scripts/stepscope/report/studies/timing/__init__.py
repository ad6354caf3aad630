"""The report on time, throughput and memory of a step; its section module puts the parts together."""
