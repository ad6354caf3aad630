"""The page that opens the report; its section module puts the parts together."""
