"""The report on the step made cheaper, one change at a time; its section module puts the parts together."""
