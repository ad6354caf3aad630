"""Published figures beside ours, all of them; its section module puts the parts together."""
