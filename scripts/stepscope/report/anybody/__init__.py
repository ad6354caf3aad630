"""One page of a trace or a snapshot of anybody's, made with the report's own parts."""
