"""The report on kernels, launches and idle time; its section module puts the parts together."""
